"""Logs that hypothesis makes up: any event after any other, on few versions, so that they meet.

No service would write most of them. What the fold makes of them must not depend on where a batch
ends.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from hypothesis import strategies as st

from contracts.envelope import Envelope
from contracts.events import (
    AttachmentsReceived,
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Fact,
    Failed,
    Finding,
    Indexed,
    LeftOut,
    Parsed,
    ProjectConfigured,
    Reinstated,
    Rejected,
    Released,
    ScanVerdict,
    Superseded,
    Window,
)
from kernel.log import Pending
from kernel.testing import EPOCH, received, to_envelope

TEXTS = ("a" * 64, "b" * 64)
DAYS = [datetime(2020, 1, n, tzinfo=UTC) for n in (1, 2, 3)]
DAYS[1] += timedelta(milliseconds=500)
VERSIONS = [
    received(
        f"{name}-{n}.md", document_id=name * 32, source_key=f"/{name}.md", valid_from=DAYS[n],
        parent="f" * 32 if n else None, trusted=name == "d",
    )
    for name, n in (("d", 0), ("d", 1), ("d", 2), ("e", 0), ("e", 1))
]  # fmt: skip
Line = Sequence[tuple[int, int]]
"""(day, version of the document)"""


class Step(NamedTuple):
    """An event: of which version, job, text; a second later than the one before? `line`: as it is
    from then on."""

    kind: str
    version: int = 0
    job: int = 0
    text: int = 0
    later: bool = True
    line: Line = ()


_lines = st.dictionaries(st.integers(0, 2), st.integers(0, 2), max_size=3).map(
    lambda days: sorted(days.items())
)
_kinds = st.sampled_from(
    [
        "received", "received", "parsed", "clean", "converted", "chunked", "indexed", "indexed",
        "indexed", "indexed", "quarantine", "quarantine", "block", "released", "released",
        "rejected", "failed", "cancelled", "erased", "erased with", "gone", "superseded",
        "superseded", "reinstated", "attachments", "configured",
    ]
)  # fmt: skip
_steps = st.builds(
    Step, _kinds, st.integers(0, 4), st.integers(0, 2), st.integers(0, 1), st.booleans(), _lines
)


@st.composite
def logs(draw: st.DrawFn, most: int = 40) -> list[Envelope]:
    """A log: the receipts of some versions, then anything."""
    size = draw(st.integers(0, most))  # lists alone are short
    begun = [Step("received", n) for n in range(draw(st.integers(1, 5)))]
    return log_of(begun + draw(st.lists(_steps, min_size=size, max_size=size)))


def log_of(steps: Sequence[Step]) -> list[Envelope]:
    """From position 1 on."""
    log, at = [], EPOCH
    for position, step in enumerate(steps, 1):
        at += timedelta(seconds=step.later)
        fact = _fact(step.kind, VERSIONS[step.version], TEXTS[step.text], step.line)
        pending = Pending(fact, uuid4(), UUID(int=10 * step.version + step.job), "test")
        envelope = to_envelope(pending, position=position, version=position)
        log.append(envelope.model_copy(update={"recorded_at": at}))
    return log


def windows(receipt: Event, line: Line) -> tuple[Window, ...]:
    """A line of the document's versions."""
    ids = [v.version_id for v in VERSIONS if v.document_id == receipt.document_id]
    ends = [*(DAYS[day] for day, _ in line[1:]), None]
    return tuple(
        Window(version_id=ids[n % len(ids)], valid_from=DAYS[day], valid_until=until)
        for (day, n), until in zip(line, ends, strict=False)
    )


def _fact(kind: str, receipt: DocumentReceived, text: str, line: Line) -> Fact:
    ids: dict[str, Any] = receipt.ids
    body: dict[str, Any] = {"body_sha256": text, "meta_sha256": text}
    judged: dict[str, Any] = {"subject": "converted", "text_sha256": text, "meta_sha256": text}
    scanned = ids | judged | {"score": 0.5, "ruleset": "r"}
    found = (Finding(rule="rule", severity="low", byte_start=0, byte_end=1),)
    decided: dict[str, Any] = ids | {"subject": "converted", "text_sha256": text}
    decided |= {"reviewer": "p", "reason": "words"}
    left = LeftOut(number=1, name="x.exe", media_type="", code="too-deep")
    span = windows(receipt, line)
    facts: dict[str, Callable[[], Fact]] = {
        "received": lambda: receipt.model_copy(update={"attempt": 1 + TEXTS.index(text)}),
        "parsed": lambda: Parsed(**ids, parsed_sha256=text, parser=text[:9], language="sr"),
        "clean": lambda: ScanVerdict(**scanned, verdict="clean"),
        "quarantine": lambda: ScanVerdict(**scanned, verdict="quarantine"),
        "block": lambda: ScanVerdict(**scanned, verdict="block", findings=found),
        "converted": lambda: Converted(**ids, **body, body_bytes=9, converter="c", language="en"),
        "chunked": lambda: Chunked(
            **ids, **body, chunks_sha256=text, chunk_count=3, chunker="h"
        ),
        "indexed": lambda: Indexed(
            **ids, body_sha256=text, chunks_sha256=text, chunk_count=4, embedder="e",
            embedded=1, reused=0,
        ),
        "released": lambda: Released(**decided),
        "rejected": lambda: Rejected(**decided),
        "failed": lambda: Failed(**ids, stage="indexer", code="x", reason="words"),
        "cancelled": lambda: Failed(**ids, stage="ingest", code="cancelled", reason="words"),
        "erased": lambda: Erased(**ids, reason="request", scope="document", blobs=1),
        "erased with": lambda: Erased(
            **ids, reason="request", scope="document", blobs=1, cause="f" * 32
        ),
        "gone": lambda: Erased(**ids, reason="blocked", scope="version", blobs=1),
        "superseded": lambda: Superseded(
            **ids, by_version_id="f" * 32, valid_until=DAYS[0], windows=span
        ),
        "reinstated": lambda: Reinstated(
            **ids, supersedes="f" * 32, valid_from=DAYS[0], windows=span
        ),
        "attachments": lambda: AttachmentsReceived(**ids, taken=1, left_out=(left,)),
        "configured": lambda: ProjectConfigured(project=receipt.project, actor="admin-1"),
    }  # fmt: skip
    return facts[kind]()
