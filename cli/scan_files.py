"""`kb scan FILE…`: what an ingest would say of files, attachments included."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cli.convert import MOST_NESTED, readable, settings_of_converter
from cli.output import clean, note, out
from cli.scan_judge import told
from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place, Span, SpanMap
from contracts.events import Finding, Verdict
from kernel.errors import Refusal, Retry
from services.scanner.domain import ScanResult
from services.scanner.judge import Judge
from services.scanner.texts import hidden_of, hidden_of_meta

if TYPE_CHECKING:
    from services.converter.cell import ParseCell
    from services.converter.outcome import BodyOutcome, ParseOutcome

_WORSE: dict[Verdict, int] = {"clean": 0, "quarantine": 1, "block": 2}
STDIN = "-"


@dataclass
class Scanned:
    """The judgement of one file. `verdict` is None if it could not be read: then `code` says why.

    `findings` are those of `contracts.events.Finding` with the rule's `kind` and reason (`why`),
    the `words`, where the bytes count (`text`: body, hidden or parse) and `places` in the source.
    """

    file: str
    ok: bool = False
    verdict: Verdict | None = None
    score: float = 0.0
    ruleset: str = ""
    media_type: str = ""
    title: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str | None = None
    reason: str | None = None
    attachments: list["Scanned"] = field(default_factory=list)

    def all(self) -> Iterator["Scanned"]:
        """Itself, and what is attached to it."""
        yield self
        for inner in self.attachments:
            yield from inner.all()


def files(paths: Sequence[Path], judge: Judge, *, json_: bool) -> list[Scanned]:
    """Judge files one after another and print each; `-` is standard input, read as text."""
    return asyncio.run(_files(paths, judge, json_=json_))


async def _files(paths: Sequence[Path], judge: Judge, *, json_: bool) -> list[Scanned]:
    done = []
    async with _scanner(judge) as scanner:
        for path in paths:
            if str(path) == STDIN:
                done.append(scanner.text(sys.stdin.buffer.read()))
            else:
                done.append(await scanner.file(path))
            _tell(done[-1], json_=json_)
    return done


@contextlib.asynccontextmanager
async def _scanner(judge: Judge) -> AsyncIterator["_Scanner"]:
    from services.converter.cell import ParseCell

    async with ParseCell(settings_of_converter()) as cell:
        yield _Scanner(cell, judge)


class _Scanner:
    """Converts files in one warm child process and judges what comes out."""

    def __init__(self, cell: "ParseCell", judge: Judge) -> None:
        self._cell, self._judge = cell, judge

    def text(self, data: bytes) -> Scanned:
        """A text as it is."""
        row = Scanned(STDIN, media_type="text/plain")
        with self._timed(row):
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise Refusal("invalid-encoding", "standard input is not UTF-8") from None
            result = self._judge.judge(text)
            row.findings = [
                {"text": "body", **told(f, data), "places": _line_of(data, f)}
                for f in result.findings
            ]
            self._settle(row, [result])
        return row

    async def file(self, path: Path, shown: str = "", depth: int = 0) -> Scanned:
        """A file of any format, with what is attached to it."""
        row = Scanned(shown or str(path))
        with self._timed(row), contextlib.ExitStack() as kept:
            source = kept.enter_context(readable(path))
            parse = kept.enter_context(await self._parse(row, source, path))
            folder = Path(kept.enter_context(TemporaryDirectory(prefix="kb-scan-")))
            stored = folder / "parsed"
            _write(stored, parse.to_bytes())
            body = kept.enter_context(await self._cell.canonical(stored, path.stem))
            self._judged(row, stored, body)
            names = [a.name for a in parse.head.attachments]
            for number, (name, data) in enumerate(zip(names, parse.files, strict=True)):
                inner = folder / f"{number}" / name
                _write(inner, data)
                row.attachments.append(await self._attached(inner, f"{row.file} » {name}", depth))
        return row

    async def _attached(self, path: Path, shown: str, depth: int) -> Scanned:
        if depth >= MOST_NESTED:
            return Scanned(shown, code="too-deep", reason="attached too deeply")
        return await self.file(path, shown, depth + 1)

    async def _parse(self, row: Scanned, source: Path, named: Path) -> "ParseOutcome":
        from kernel.media import SNIFF_BYTES, lie, sniff

        with source.open("rb") as file:
            row.media_type = sniff(file.read(SNIFF_BYTES), named.name)
        # Without a policy: a text in a language that an ingest refuses may be hostile as well.
        parse = await self._cell.parse(source, row.media_type)
        liar = lie(named.name, row.media_type)
        row.warnings = (*((liar,) if liar else ()), *parse.head.notes.warnings)
        row.title = parse.head.meta.title
        return parse

    def _judged(self, row: Scanned, stored: Path, body: "BodyOutcome") -> None:
        """As an ingest does: the parse with what it hides, then the body that would be indexed."""
        from kernel.parsed import load

        parsed = load(stored).document
        hidden = hidden_of(parsed)
        first = self._judge.judge(parsed.markdown, hidden)
        text = b"".join(body.to_bytes())
        second = self._judge.judge(text.decode(), hidden_of_meta(body.meta))
        row.title = body.meta.title
        row.findings = _merged(first, parsed, hidden, second, _Body(text, body))
        self._settle(row, [first, second])

    def _settle(self, row: Scanned, results: Sequence[ScanResult]) -> None:
        row.ok = True
        row.verdict = max(results, key=lambda r: _WORSE[r.verdict]).verdict
        row.score = max(r.score for r in results)
        row.ruleset = self._judge.version

    @contextlib.contextmanager
    def _timed(self, row: Scanned) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except Refusal as refusal:
            row.ok, row.verdict = False, None
            row.code, row.reason = refusal.code, refusal.reason
        except Retry as away:
            row.ok, row.verdict, row.code, row.reason = False, None, "not-now", str(away)
        except OSError as error:
            row.ok, row.verdict, row.code = False, None, "not-readable"
            row.reason = error.strerror or type(error).__name__
        row.seconds = round(time.perf_counter() - started, 3)


class _Body:
    """The canonical Markdown, and where its parts came from."""

    def __init__(self, text: bytes, outcome: "BodyOutcome") -> None:
        self.text, self.meta = text, outcome.meta
        self._outcome = outcome
        self._map: SpanMap | None = None

    def places(self, finding: Finding) -> list[dict[str, Any]]:
        """The first and the last place that a finding touches."""
        if not self._outcome.has_places:
            return []
        if self._map is None:
            data = b"".join(self._outcome.places("0" * 64))
            self._map = SpanMap.model_validate_json(data)
        return _ends(self._map.within(finding.byte_start, finding.byte_end))


def _ends(spans: Sequence[Span]) -> list[dict[str, Any]]:
    ends = [spans[0].place, spans[-1].place] if spans else []
    return [p.model_dump(mode="json", exclude_none=True) for p in dict.fromkeys(ends)]


def _merged(
    first: ScanResult,
    parsed: ParsedDocument,
    hidden: Sequence[HiddenText],
    second: ScanResult,
    body: _Body,
) -> list[dict[str, Any]]:
    """Findings of both scans, each once: where both have it, in the body."""
    rows: list[dict[str, Any]] = []
    for finding in second.findings:
        if finding.hidden is None:
            told_ = told(finding, body.text)
            rows.append({"text": "body", **told_, "places": body.places(finding)})
    in_body = {(row["rule"], row["severity"]) for row in rows}
    rows += _in_hidden(first, hidden)
    known = {(row["rule"], row["words"]) for row in rows}
    rows += [row for row in _in_meta(second, body.meta) if (row["rule"], row["words"]) not in known]
    seen = [f for f in first.findings if f.hidden is None and (f.rule, f.severity) not in in_body]
    if seen:
        source = parsed.markdown.encode()
        spans = SpanMap(body_sha256="0" * 64, spans=parsed.spans)
        for finding in seen:
            places = _ends(spans.within(finding.byte_start, finding.byte_end))
            rows.append({"text": "parse", **told(finding, source), "places": places})
    ranks = {"high": 0, "medium": 1, "low": 2}
    return sorted(rows, key=lambda row: ranks[row["severity"]])


def _in_hidden(result: ScanResult, hidden: Sequence[HiddenText]) -> Iterator[dict[str, Any]]:
    for finding in result.findings:
        if finding.hidden is not None:
            known = finding.hidden_index is not None
            source = hidden[finding.hidden_index or 0].text.encode() if known else b""
            yield {"text": "hidden", **told(finding, source), "places": []}


def _in_meta(result: ScanResult, meta: BodyMeta) -> Iterator[dict[str, Any]]:
    return _in_hidden(result, hidden_of_meta(meta))


def _line_of(data: bytes, finding: Finding) -> list[dict[str, Any]]:
    first = data.count(b"\n", 0, finding.byte_start) + 1
    last = first + data.count(b"\n", finding.byte_start, finding.byte_end)
    return [Place(lines=(first, last)).model_dump(mode="json", exclude_none=True)]


def _write(path: Path, parts: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(parts)


# -- for a person ----------------------------------------------------------------------------------


def _tell(row: Scanned, *, json_: bool) -> None:
    if json_:
        out(json.dumps(asdict(row), ensure_ascii=False))
        return
    for each in row.all():
        _tell_one(each)


def _tell_one(row: Scanned) -> None:
    if not row.ok:
        note(clean(f"error: {row.file}: {row.reason} ({row.code})", one_line=True))
        return
    facts = f"{row.verdict}, score {row.score:.2f}, {row.ruleset}, {row.seconds:.1f} s"
    out(clean(f"{row.file}: {facts}", one_line=True))
    for warning in row.warnings:
        note(clean(f"warning: {row.file}: {warning}", one_line=True))
    for finding in row.findings:
        _tell_finding(finding)


def _tell_finding(finding: dict[str, Any]) -> None:
    where = f"bytes {finding['byte_start']}-{finding['byte_end']}"
    if finding["text"] == "hidden":
        where += f" of hidden text {finding['hidden_index']} ({finding['hidden']})"
    elif finding["text"] == "parse":
        where += " of the parse, not in the body"
    more = [f"and {finding['count'] - 1} more"] if finding["count"] > 1 else []
    facts = [where, *map(place_of, finding["places"]), *more]
    out(f"  {finding['severity']:<6} {finding['rule']}  {clean('; '.join(facts), one_line=True)}")
    if finding["words"]:
        out(f"         «{finding['words']}»")
    if finding["decoded"]:
        out(f"         hidden by: {clean(', '.join(finding['decoded']), one_line=True)}")
    if finding["why"]:
        out(f"         {clean(finding['why'], one_line=True)}")


def place_of(place: dict[str, Any]) -> str:
    """A place in a few words: `page 2`, `lines 5-7`, `Sheet1!B2`, `part word/document.xml …`."""
    told_ = []
    if "page" in place:
        told_.append(f"page {place['page']}")
    if "sheet" in place or "cells" in place:
        told_.append("!".join(filter(None, (place.get("sheet"), place.get("cells")))))
    if "lines" in place:
        first, last = place["lines"]
        told_.append(f"line {first}" if first == last else f"lines {first}-{last}")
    told_ += [f"{name} {place[name]}" for name in ("part", "path") if name in place]
    return " ".join(told_)
