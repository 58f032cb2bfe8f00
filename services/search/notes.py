"""What a list says of a version beside its manifest: the newest verdict, and who trusted it."""

from collections.abc import Sequence
from typing import Any

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, ScanVerdict, Severity
from contracts.http import ScanNote, Trust, VersionView

RULES = 20
"""Rules that a note names."""
_RANK: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}


def notes(version: VersionView, envelopes: Sequence[Envelope]) -> dict[str, Any]:
    """`scan` and `trust` of a version, from verdicts and receipts of it and others, in order."""
    own = [e for e in envelopes if e.data.get("version_id") == version.version_id]
    return {"scan": _scan(own, version.status), "trust": _trust(own) if version.trusted else None}


def _scan(own: Sequence[Envelope], status: str) -> ScanNote | None:
    """The newest verdict; of what waits for a person the one that made it wait."""
    for envelope in reversed(own):
        event = envelope.fact()
        if not isinstance(event, ScanVerdict):
            continue
        if status == "review" and event.verdict != "quarantine":
            continue
        worst_first = sorted(event.findings, key=lambda f: _RANK[f.severity])
        rules = list(dict.fromkeys(f.rule for f in worst_first))
        return ScanNote(
            **event.model_dump(
                include={
                    "subject",
                    "verdict",
                    "score",
                    "ruleset",
                    "bypassed",
                    "ruled",
                    "text_sha256",
                }
            ),
            worst=worst_first[0].severity if worst_first else None,
            rules=rules[:RULES],
            findings=sum(f.count for f in event.findings),
            at=envelope.recorded_at,
        )
    return None


def _trust(own: Sequence[Envelope]) -> Trust | None:
    """Whose receipt began the trust that still lasts; to try again is not to trust."""
    trust: Trust | None = None
    for envelope in own:
        event = envelope.fact()
        if isinstance(event, DocumentReceived) and event.trusted:
            trust = trust or Trust(actor=envelope.actor, at=envelope.recorded_at)
        elif isinstance(event, DocumentReceived):
            trust = None
    return trust
