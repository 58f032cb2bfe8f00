"""What a reviewer sees: the open verdict, and the parts of the judged text around its findings."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from contracts.artifacts import BodyMeta, HiddenText
from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Event, Finding, ScanVerdict
from contracts.http import ReviewFinding, ReviewPiece, ReviewText, ReviewView
from kernel.fence import visible
from kernel.large import OneLarge
from services.scanner import review
from services.scanner.decode import decoded
from services.scanner.ruleset import Ruleset, default_ruleset
from services.scanner.stored import Reads, read_checked, read_parse, read_size
from services.scanner.texts import hidden_of, hidden_of_meta

AROUND = 400
"""Bytes of a text on either side of a finding."""
BESIDE = 120
"""The same in the excerpt of one finding."""
HEAD, TAIL = 1600, 400
"""Bytes of a long match: its beginning and its end."""
MATCH = 400
"""Bytes of a match in the excerpt of a finding; half of them from its end."""
FINDINGS = 200
UNPLACED = 20
"""Hidden texts that are shown when it is not known which of them is meant."""
SAID = 600
"""Characters of what a match says when it is decoded."""
DECODED = 65_536
"""Bytes of a match up to which that is tried."""

Span = tuple[int, int]


class Log(review.Reads, Protocol):
    """What is read of the log."""

    async def received(self, event: Event) -> DocumentReceived: ...


@dataclass(frozen=True)
class Judged:
    """The texts that a verdict is about."""

    text: str
    hidden: tuple[HiddenText, ...]


async def exhibit(version_id: str, log: Log, blobs: Reads, large: OneLarge) -> ReviewView:
    """The open verdict on a version with its evidence, from the very bytes that were judged.

    Raises:
        Refusal: `not-in-review` (409), `text-missing` (410), `text-changed` (409).
        Retry: the text is large, and another large one is under work.
    """
    verdict, envelope, _ = await review.waiting(version_id, log)
    receipt = await log.received(verdict)
    rules = await asyncio.to_thread(default_ruleset)
    async with large.turn(await read_size(blobs, verdict.text_sha256)):
        judged = await _judged(verdict, blobs)
        return await asyncio.to_thread(_view, verdict, envelope, receipt, judged, rules)


async def _judged(verdict: ScanVerdict, blobs: Reads) -> Judged:
    if verdict.subject == "parsed":
        parsed = await read_parse(blobs, verdict.text_sha256)
        return Judged(parsed.markdown, hidden_of(parsed))
    body = await read_checked(blobs, verdict.text_sha256)
    meta = await read_checked(blobs, verdict.meta_sha256 or "")
    return Judged(body.decode(), hidden_of_meta(BodyMeta.model_validate_json(meta)))


def _view(
    verdict: ScanVerdict,
    envelope: Envelope,
    receipt: DocumentReceived,
    judged: Judged,
    rules: Ruleset,
) -> ReviewView:
    shown = verdict.findings[:FINDINGS]
    numbered = list(enumerate(shown, 1))
    sources: list[int | None] = [None, *_numbers(shown, judged)]
    texts = [_text(at, judged, numbered) for at in sources]
    found = [_finding(n, f, judged, sources, rules) for n, f in numbered]
    return ReviewView(
        **verdict.model_dump(
            include={"version_id", "document_id", "source_id", "project", "subject",
                     "text_sha256", "score", "ruleset", "lowered"}
        ),
        name=visible(receipt.name),
        judged_at=envelope.recorded_at,
        rescan=verdict.rescan is not None,
        findings=found,
        texts=texts,
        left_out=len(verdict.findings) - len(shown),
    )  # fmt: skip


def _numbers(findings: Sequence[Finding], judged: Judged) -> list[int]:
    """The hidden texts to show: those with findings; if a place is not known, the first ones."""
    count = len(judged.hidden)
    named = {f.hidden_index for f in findings if f.hidden is not None}
    if any(f.hidden is None and f.byte_start < 0 for f in findings):
        named |= {n for n, h in enumerate(judged.hidden[:UNPLACED]) if h.text.strip()}
    return sorted(n for n in named if n is not None and 0 <= n < count)


def _source(finding: Finding, judged: Judged) -> str | None:
    """The text in which the bytes of a finding count; None: it is not known, or not there."""
    if finding.byte_start < 0:
        return None
    if finding.hidden is None:
        return judged.text
    at = finding.hidden_index
    return judged.hidden[at].text if at is not None and at < len(judged.hidden) else None


def _finding(
    number: int, finding: Finding, judged: Judged, sources: list[int | None], rules: Ruleset
) -> ReviewFinding:
    rule = rules.rules.get(finding.rule)
    text = _source(finding, judged)
    data = b"" if text is None else _bytes(text)
    start, end = _clamped(finding, len(data))
    match = data[start:end]
    return ReviewFinding(
        number=number,
        **finding.model_dump(include={"rule", "severity", "count", "byte_start", "byte_end"}),
        kind=rule.kind if rule else "",
        why=rule.why if rule else "",
        text=None if text is None else sources.index(finding.hidden_index),
        decoded=list(finding.decoded),
        before=_shown(data, max(0, start - BESIDE), start),
        match=_cut(match),
        after=_shown(data, end, min(len(data), end + BESIDE)),
        says=_says(match, finding.decoded),
    )


def _cut(match: bytes) -> str:
    if len(match) <= MATCH:
        return _shown(match, 0, len(match))
    half = MATCH // 2
    return f"{_shown(match, 0, half)} … {_shown(match, len(match) - half, len(match))}"


def _says(match: bytes, names: Sequence[str]) -> str:
    """What the decoders make of a match, if they find the same encodings in it alone."""
    if not names or not 0 < len(match) <= DECODED:
        return ""
    for passage in decoded(match.decode("utf-8", "replace")):
        if passage.text is not None and passage.names == tuple(names):
            return visible(passage.text[:SAID])
    return ""


def _text(at: int | None, judged: Judged, numbered: Sequence[tuple[int, Finding]]) -> ReviewText:
    source = None if at is None else judged.hidden[at]
    data = _bytes(judged.text if source is None else source.text)
    spans = {
        number: _clamped(finding, len(data))
        for number, finding in numbered
        if finding.byte_start >= 0 and finding.hidden_index == at
    }
    return ReviewText(
        hidden=source.kind if source else None,
        hidden_index=at,
        size_bytes=len(data),
        pieces=list(_pieces(data, spans)),
    )


def _pieces(data: bytes, spans: dict[int, Span]) -> Iterator[ReviewPiece]:
    """The text around its findings, or its beginning if it has none; gaps say how long they are."""
    windows = _windows(data, list(spans.values())) or [(0, _boundary(data, 2 * AROUND))]
    last = 0
    for start, end in windows:
        if start > last:
            yield ReviewPiece(text="", left_out=start - last)
        edges = {e for span in spans.values() for e in span if start < e < end}
        for low, high in pairwise(sorted({start, end, *edges})):
            over = [n for n, (a, b) in spans.items() if a <= low and high <= b and a < b]
            yield ReviewPiece(text=_shown(data, low, high), findings=over)
        last = end
    if last < len(data):
        yield ReviewPiece(text="", left_out=len(data) - last)


def _windows(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """Stretches around the spans, joined where they touch; a long span has two."""
    wanted: list[Span] = []
    for start, end in spans:
        if end - start > HEAD + TAIL:
            wanted += [(start - AROUND, start + HEAD), (end - TAIL, end + AROUND)]
        else:
            wanted.append((start - AROUND, end + AROUND))
    joined: list[Span] = []
    for start, end in sorted((_boundary(data, a), _boundary(data, b)) for a, b in wanted):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _clamped(finding: Finding, size: int) -> Span:
    start = min(max(0, finding.byte_start), size)
    return start, min(max(start, finding.byte_end), size)


def _boundary(data: bytes, at: int) -> int:
    """The first byte of the character in which `at` is, within the data."""
    at = min(max(0, at), len(data))
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _shown(data: bytes, start: int, end: int) -> str:
    start, end = _boundary(data, start), _boundary(data, end)
    return visible(data[start:end].decode("utf-8", "replace"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
