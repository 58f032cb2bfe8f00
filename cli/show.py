"""Replies of the front door as lines for a person. Text of documents is made harmless first."""

import json
from collections.abc import Mapping
from typing import Any

from cli import explaining
from cli.output import clean, out
from contracts.artifacts import breadcrumb
from contracts.events import EVENTS
from contracts.generations import GenerationList, RebuildReply
from contracts.http import (
    DocumentPage,
    DocumentView,
    JobPage,
    JobView,
    Journal,
    Places,
    Relative,
    ScanNote,
    VersionView,
)
from contracts.query import Hit, QueryReply
from contracts.summaries import SummaryView


def query(reply: QueryReply, *, projects: bool = False) -> None:
    """Each hit: rank, heading path, source with byte range, score, text; its project if asked."""
    if not reply.results:
        out("nothing found")
    for rank, hit in enumerate(reply.results, 1):
        _hit(rank, hit, reply.fence, f"{hit.project}: " if projects else "")
    if reply.results and reply.answerable is not None:
        out(f"that the base answers it at all: {reply.answerable:.0%} likely")
    if reply.explain is not None:
        explaining.reply(reply.explain)


def _hit(rank: int, hit: Hit, fence: str, project: str) -> None:
    path = breadcrumb(hit.title, tuple(hit.heading_path))[1:-1]
    until = f", until {hit.valid_until:%Y-%m-%d}" if hit.valid_until else ""
    out(f"{rank}. {project}{clean(path, one_line=True)}")
    out(
        f"   {hit.score:.4f}  source {hit.source_id[:16]}  bytes {hit.byte_start}-{hit.byte_end}"
        f"  valid from {hit.valid_from:%Y-%m-%d}{until}"
    )
    if hit.explain is not None:
        explaining.hit(hit.explain)
    lines = clean(hit.text).splitlines()
    if fence and lines[0].startswith(f"<{fence} "):  # that is for a model
        lines = lines[1:-1]
    for line in lines:
        out(f"   | {line}")
    for twin in hit.twins:
        where = clean(" > ".join((twin.title, *twin.heading_path)), one_line=True)
        out(f"   = {where}  source {twin.source_id[:16]}  bytes {twin.byte_start}-{twin.byte_end}")
    out()


def document(view: DocumentView) -> None:
    """The manifest, then the line of versions."""
    for name, value in _facts(view).items():
        out(f"{name:<14} {clean(str(value), one_line=True)}")
    for version in view.versions:
        mark = "*" if version.current else " "
        until = f"{version.valid_until:%Y-%m-%d}" if version.valid_until else ""
        window = f"{version.valid_from:%Y-%m-%d} – {until:<10}"
        out(f"{mark} {version.version_id}  {window}  {version.status}")
    _family(view)


def _family(view: DocumentView) -> None:
    """What it is attached to, what is attached to it, what of that did not come in."""
    if view.attached_to is not None:
        out(f"attached to {_relative(view.attached_to)}")
    for other in view.attachments:
        out(f"+ {_relative(other)}")
    for left in view.left_out:
        name = clean(str(left.get("name")), one_line=True)
        out(f"- {name}  {left.get('media_type') or 'unknown type'}  left out: {left.get('code')}")
    more = sum(view.left_out_by_code.values()) - len(view.left_out)
    if more > 0:
        out(f"- {more} more left out")


def _relative(other: Relative) -> str:
    return f"{other.document_id}  {other.status:<10} {clean(other.name, one_line=True)}"


_FAMILY = {"attached_to", "attachments", "left_out", "left_out_by_code"}


def _facts(view: VersionView) -> dict[str, Any]:
    apart = {"versions", "windows", "current", "scan", "trust", *_FAMILY}
    facts = view.model_dump(exclude=apart, exclude_none=True)
    facts["labels"] = ", ".join(view.labels)
    if not view.labels:
        del facts["labels"]
    if view.error:
        facts["error"] = _error(view.error)
    if view.trust:
        facts["trusted"] = f"by {view.trust.actor}, {view.trust.at:%Y-%m-%d %H:%M}"
    if view.scan:
        facts["scan"] = _scan(view.scan)
    return facts


def _scan(scan: ScanNote) -> str:
    """The newest verdict in one line."""
    said = f"trusted, the rules say {scan.ruled or '?'}" if scan.bypassed else scan.verdict
    worst = f", worst {scan.worst}" if scan.worst else ""
    rules = f": {', '.join(scan.rules)}" if scan.rules else ""
    return f"{said} ({scan.subject} text, score {scan.score:.2f}{worst}; {scan.ruleset}){rules}"


def _error(error: Mapping[str, Any]) -> str:
    known = [str(error[k]) for k in ("stage", "code", "reason") if error.get(k)]
    return ": ".join(known) or json.dumps(dict(error))


def places(reply: Places) -> None:
    """A line for each span: its bytes, then its place."""
    if not reply.spans:
        out("no place is known for this range")
    for span in reply.spans:
        told = span.place.model_dump(exclude_none=True)
        if box := span.place.box:
            told["box"] = " ".join(f"{side:.0f}" for side in box)
        if lines := span.place.lines:
            told["lines"] = f"{lines[0]}-{lines[1]}"
        text = "  ".join(f"{name} {value}" for name, value in told.items())
        out(f"{span.byte_start}-{span.byte_end}  {clean(text, one_line=True)}")


def summary(view: SummaryView) -> None:
    """The sentence, then each heading with its digest, and where in the body that stands."""
    if view.lead is not None:
        out(clean(view.lead.text, one_line=True))
    for section in view.sections:
        indent = "  " * max(0, section.depth - 1)
        if section.heading_path:
            heading = clean(section.heading_path[-1], one_line=True)
            out(f"\n{indent}{heading}  [{section.byte_start}-{section.byte_end}]")
        for s in section.digest:
            out(f"{indent}  - {clean(s.text, one_line=True)}  [{s.byte_start}-{s.byte_end}]")
    if view.left_out:
        out(f"\n{view.left_out} more headings")
    out(f"\nby {clean(view.summariser, one_line=True)}, of version {view.version_id}")


def documents(page: DocumentPage) -> None:
    """One line a document."""
    for d in page.documents:
        name = clean(d.title or d.name, one_line=True)
        trust = f"  trusted by {clean(d.trust.actor, one_line=True)}" if d.trust else ""
        mark = "  trusted" if d.trusted and not d.trust else trust
        out(f"{d.document_id}  {d.status:<10} {d.chunk_count or 0:>5}  {name}{mark}")


def jobs(page: JobPage) -> None:
    """One line a job."""
    for j in page.jobs:
        error = f"  {clean(_error(j.error), one_line=True)}" if j.error else ""
        name = clean(j.name, one_line=True)
        late = f"  overdue: {j.next_action}" if j.overdue else ""
        out(f"{j.job_id}  {j.started_at:%Y-%m-%d %H:%M:%S}  {j.status:<10} {name}{error}{late}")


def job(view: JobView) -> None:
    """Whose turn it is, until when, what happens next; the error."""
    facts: dict[str, Any] = view.model_dump(exclude_none=True, exclude={"error", "progress"})
    facts["progress"] = f"{view.progress:.0%}"
    facts |= {k: str(v) for k, v in (view.error or {}).items() if k in ("code", "reason")}
    for name, value in facts.items():
        out(f"{name:<14} {clean(str(value), one_line=True)}")


def journal(entries: Journal) -> None:
    """One line an event, oldest first."""
    for e in entries.entries:
        event({"position": e.position, "time": e.at.isoformat(), "type": e.type, "data": e.data})


def event(cloud: Mapping[str, Any]) -> None:
    """An event: position, time, type, and what is its own; lists that a person reads, below it."""
    type_ = str(cloud.get("type", "")).removeprefix("kb.")
    common = set(EVENTS["DocumentReceived"].model_fields) & set(EVENTS["Failed"].model_fields)
    data = {k: v for k, v in dict(cloud.get("data") or {}).items() if k not in common}
    notes = _notes(type_, data)
    text = clean(json.dumps(data, ensure_ascii=False), one_line=True)
    when = str(cloud.get("time", ""))[:19]
    out(f"{cloud.get('position', ''):>6}  {when}  {type_:<17} {text[:300]}")
    for line in notes:
        out(f"{'':>27}  {clean(line, one_line=True)}")


def _notes(type_: str, data: dict[str, Any]) -> list[str]:
    """Takes out of `data` what is shown as lines: nothing of it is cut off."""
    lines: list[str] = []
    if type_ == "Parsed":
        shares, missing = data.pop("shares", None), data.pop("missing_pages", None)
        readings, warnings = data.pop("readings", None), data.pop("warnings", None)
        if shares:
            lines.append("languages: " + ", ".join(f"{k} {v:.0%}" for k, v in shares.items()))
        if missing:
            lines.append(f"pages that could not be read: {ranges(missing)}")
        lines += _readings(readings or [])
        lines += [f"warning: {w}" for w in warnings or []]
    elif type_ == "ScanVerdict":
        lines += _findings(data.pop("findings", None) or [])
    elif type_ == "AttachmentsReceived":
        left = data.pop("left_out", None) or []
        lines += [f"left out: {x['number']}. {x['name']} ({x['code']})" for x in left]
    return lines


FINDINGS = 20
"""Findings of a verdict that a journal tells, worst first."""


def _findings(found: list[dict[str, Any]]) -> list[str]:
    """One line a finding: how bad, which rule, where, and why in short."""
    if not found:
        return []
    from services.scanner.ruleset import reasons

    lines = []
    for f in found[:FINDINGS]:
        times = f" ×{f['count']}" if f.get("count", 1) > 1 else ""
        where = f"bytes {f['byte_start']}-{f['byte_end']}" if f["byte_start"] >= 0 else "hidden"
        hidden = f" of hidden {f['hidden']}" if f.get("hidden") else ""
        coded = f" in {'+'.join(f['decoded'])}" if f.get("decoded") else ""
        known = reasons().get(f["rule"])
        why = f": {known}" if known else ""
        lines.append(f"{f['severity']:<6} {f['rule']}{times}, {where}{hidden}{coded}{why}")
    if len(found) > FINDINGS:
        lines.append(f"and {len(found) - FINDINGS} findings more")
    return lines


def _readings(readings: list[dict[str, Any]]) -> list[str]:
    """One line an engine whose text was kept: which pages, and the scores side by side."""
    by_engine: dict[str, list[dict[str, Any]]] = {}
    for reading in readings:
        by_engine.setdefault(str(reading["engine"]), []).append(reading)
    lines = []
    for engine, kept in by_engine.items():
        names = sorted({n for r in kept for n in r["scores"]})
        means = [(name, [r["scores"][name] for r in kept if name in r["scores"]]) for name in names]
        scores = ", ".join(f"{name} {sum(s) / len(s):.2f}" for name, s in means)
        pages = ranges([int(r["page"]) for r in kept])
        lines.append(f"OCR by {engine}: pages {pages}; mean scores there: {scores}")
    return lines


def ranges(numbers: list[int]) -> str:
    """`1-3, 7` for 1, 2, 3, 7."""
    spans: list[tuple[int, int]] = []
    for n in sorted(set(numbers)):
        if spans and n == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], n)
        else:
            spans.append((n, n))
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def generations(reply: GenerationList) -> None:
    """One line a generation; `*` is the one that queries read."""
    for g in reply.generations:
        mark = "*" if g.state == "live" else " "
        out(
            f"{mark} {g.project} {g.generation:<3} {g.state:<8} since {g.since:%Y-%m-%d %H:%M}"
            f"  {g.versions} versions, {g.passages} passages, {g.vectors} vectors"
            f"  {clean(g.embedder, one_line=True)}  {g.chunker or 'unknown'}"
        )


def rebuilt(reply: RebuildReply) -> None:
    """One line a project."""
    for entry in reply.rebuilt:
        facts = entry.model_dump(exclude={"project"})
        out(f"{entry.project}: " + ", ".join(f"{name} {value}" for name, value in facts.items()))
