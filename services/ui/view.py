"""What a page shows of a thing: pure functions from contract models to values and safe HTML."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from contracts.artifacts import breadcrumb
from contracts.events import EVENTS
from contracts.http import (
    FINAL,
    DocumentView,
    JournalEntry,
    ReviewPiece,
    ReviewText,
    ReviewView,
    VersionView,
)
from contracts.query import Hit, QueryReply
from services.ui.markdown import snippet
from services.ui.strings import Strings
from services.ui.words import matcher

TONES = {
    "indexed": "good", "review": "warn", "failed": "bad", "blocked": "bad", "rejected": "bad",
    "erased": "mute",
}  # fmt: skip
STEPS = ("received", "parsed", "converting", "scanning", "chunking", "indexing", "indexed")
_OPEN_ENDED = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Card:
    """A hit as a card."""

    hit: Hit
    number: int
    path: tuple[str, ...]
    html: Markup
    link: str
    validity: "Validity"
    share: int
    """The score in percent of the best hit's."""


@dataclass(frozen=True)
class Validity:
    """Which words of the catalogue say when something is valid."""

    key: str
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class Line:
    """A journal entry: what happened, in words."""

    entry: JournalEntry
    title: str
    detail: str
    tone: str
    data: str


@dataclass(frozen=True)
class Stretch:
    """A piece of a judged text: `severity` is that of the worst finding that covers it.

    `begins`: numbers of the findings whose first piece this is; `why`: of all that cover it.
    """

    text: str
    left_out: int
    severity: str
    begins: list[int]
    why: str


@dataclass(frozen=True)
class MarkedText:
    """A judged text with its findings marked; `number` counts from 1."""

    number: int
    text: ReviewText
    stretches: list[Stretch]


@dataclass(frozen=True)
class Verdict:
    """What the safety check said last: of which text, and because of what."""

    subject: str
    findings: list[dict[str, Any]]


def cards(reply: QueryReply, question: str, now: datetime) -> list[Card]:
    """Hits as cards, in their order."""
    hits = reply.results
    matches = matcher(question)
    best = max((h.score for h in hits), default=0.0) or 1.0
    return [
        Card(
            hit=hit,
            number=number,
            path=crumbs(hit),
            html=Markup(snippet(passage_text(hit, reply.fence), matches)),  # noqa: S704 - made safe there
            link=passage_link(hit),
            validity=validity(hit.valid_from, hit.valid_until, now),
            share=max(2, round(100 * hit.score / best)) if hit.score > 0 else 0,
        )
        for number, hit in enumerate(hits, 1)
    ]


def crumbs(hit: Hit) -> tuple[str, ...]:
    """The headings above a passage; a first one that repeats the title is left out."""
    path = tuple(hit.heading_path)
    return path[1:] if path and path[0] == hit.title else path


def passage_text(hit: Hit, fence: str) -> str:
    """The passage without the fence around it and the breadcrumb on top (the card shows that)."""
    lines = hit.text.split("\n")
    if fence and lines[0].startswith(f"<{fence} ") and lines[-1] == f"</{fence}>":
        lines = lines[1:-1]
    text = "\n".join(lines)
    crumb = breadcrumb(hit.title, tuple(hit.heading_path))
    if text.startswith(crumb):
        return text[len(crumb) :].strip("\n")
    # The fence may have changed a character of it.
    first, _, rest = text.partition("\n")
    return rest.strip("\n") if first.startswith("[") and first.endswith("]") else text.strip("\n")


def passage_link(hit: Hit) -> str:
    """The page of the document with this passage highlighted."""
    query = urlencode({"start": hit.byte_start, "end": hit.byte_end})
    return f"/ui/documents/{hit.version_id}?{query}#passage"


def validity(start: datetime, end: datetime | None, now: datetime) -> Validity:
    """Past, current or future; an end far away is no end."""
    if end is not None and end >= _OPEN_ENDED:
        end = None
    if end is not None and end <= now:
        return Validity("validity.past", start, end)
    return Validity("validity.future" if start > now else "validity.current", start, end)


def tone(status: str) -> str:
    """The colour of a status: good, warn, bad, mute, or busy while it is under way."""
    return TONES.get(status, "busy")


def step(status: str) -> int:
    """How far a status is on the way to `indexed`, 0 to 6; 6 where it goes no further."""
    return STEPS.index(status) if status in STEPS else len(STEPS) - 1


def final(status: str) -> bool:
    """Nothing more happens by itself."""
    return status in FINAL


def journal_lines(entries: list[JournalEntry], t: Strings) -> list[Line]:
    """The journal, newest first."""
    return [_line(entry, t) for entry in reversed(entries)]


def _line(entry: JournalEntry, t: Strings) -> Line:
    known = entry.type in EVENTS
    values = _Values({k: _shown(v) for k, v in entry.data.items()})
    values["size"] = size(entry.data.get("size_bytes"))
    values["body"] = size(entry.data.get("body_bytes"))
    values["found"] = _found(entry, t)
    return Line(
        entry=entry,
        title=t.get(f"journal.{entry.type}", entry.type),
        detail=t(f"journal_detail.{entry.type}", **_whole(t, entry, values)) if known else "",
        tone=_line_tone(entry),
        data=json.dumps(entry.data, ensure_ascii=False, indent=2),
    )


def _found(entry: JournalEntry, t: Strings) -> str:
    """Behind a verdict: that it was passed by, and the rules, worst first; three of them."""
    ruled = str(entry.data.get("ruled") or "?")
    note = t("review.bypassed", ruled=ruled) if entry.data.get("bypassed") else ""
    found = entry.data.get("findings")
    listed = [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []
    listed.sort(key=lambda f: _RANK.get(str(f.get("severity")), 3))
    rules = list(dict.fromkeys(str(f.get("rule", "?")) for f in listed))
    more = f" +{len(rules) - 3}" if len(rules) > 3 else ""
    return note + (f"; {', '.join(rules[:3])}{more}" if rules else "")


class _Values(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "–"


def _whole(t: Strings, entry: JournalEntry, values: _Values) -> dict[str, str]:
    names = re.findall(r"{(\w+)}", t(f"journal_detail.{entry.type}"))
    return {name: values[name] for name in names}


def _shown(value: object) -> str:
    text = str(value)
    return text[:10] if re.match(r"\d{4}-\d\d-\d\dT", text) else text[:300]


def _line_tone(entry: JournalEntry) -> str:
    if entry.type in {"Failed", "Rejected"}:
        return "bad"
    if entry.type == "ScanVerdict":
        return {"clean": "good", "quarantine": "warn"}.get(str(entry.data.get("verdict")), "bad")
    return {"Indexed": "good", "Released": "good", "Erased": "mute"}.get(entry.type, "neutral")


def verdict_on(entries: list[JournalEntry], version_id: str) -> Verdict | None:
    """The last verdict on a version."""
    about = [e for e in entries if e.type == "ScanVerdict" and e.version_id in {version_id, None}]
    if not about:
        return None
    found = about[-1].data.get("findings")
    listed = [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []
    return Verdict(str(about[-1].data.get("subject")), listed)


_RANK = {"high": 0, "medium": 1, "low": 2}


def marked_texts(review: ReviewView) -> list[MarkedText]:
    """The judged texts, their pieces with the findings that cover them."""
    findings = {f.number: f for f in review.findings}
    seen: set[int] = set()

    def stretch(piece: ReviewPiece) -> Stretch:
        over = sorted((findings[n] for n in piece.findings), key=lambda f: _RANK[f.severity])
        begins = [f.number for f in over if f.number not in seen]
        seen.update(begins)
        return Stretch(
            text=piece.text,
            left_out=piece.left_out,
            severity=over[0].severity if over else "",
            begins=sorted(begins),
            why=" · ".join(dict.fromkeys(f.why or f.rule for f in over)),
        )

    return [
        MarkedText(number, text, [stretch(p) for p in text.pieces])
        for number, text in enumerate(review.texts, 1)
    ]


def size(count: object) -> str:
    """Bytes for people: `1.4 MB`."""
    if not isinstance(count, int):
        return "–"
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def time_tag(moment: datetime | None, kind: str = "time") -> Markup:
    """A `<time>` in UTC that the script turns into the viewer's zone; `kind` day or time."""
    if moment is None:
        return Markup("–")
    utc = moment.astimezone(UTC)
    shown = f"{utc:%Y-%m-%d}" if kind == "day" else f"{utc:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" title="{} UTC" data-kind="{}">{}</time>').format(
        utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S}", kind, shown
    )


def sentence(text: str, **parts: object) -> Markup:
    """A catalogue string whose `{names}` are filled with escaped text or safe markup."""
    return Markup(Markup.escape(text)).format_map(  # noqa: S704 - escaped here
        {k: Markup.escape(v) for k, v in parts.items()}
    )


@cache
def static_version() -> str:
    """A short hash of all static files: their URL changes with them."""
    digest = hashlib.sha256()
    folder = resources.files("services.ui") / "static"
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def environment(t: Strings) -> Environment:
    """Templates: everything escaped, an unknown name is an error."""
    env = Environment(
        loader=PackageLoader("services.ui", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        t=t, time_tag=time_tag, size=size, tone=tone, step=step, final=final, steps=len(STEPS) - 1,
        sentence=sentence, validity=validity, event_types=" ".join(EVENTS),
        static=lambda name: f"/ui/static/{name}?v={static_version()}",
    )  # fmt: skip
    return env


def version_of(document: DocumentView, key: str) -> VersionView:
    """The version that `key` names; of a document's own id, the one that the service chose."""
    if document.version_id == key:
        return document
    return next((v for v in document.versions if v.version_id == key), document)
