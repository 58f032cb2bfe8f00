"""Replies of the front door as lines for a person. Text of documents is made harmless first."""

import json
from collections.abc import Mapping
from typing import Any

from cli.output import clean, out
from contracts.artifacts import breadcrumb
from contracts.events import EVENTS
from contracts.http import (
    DocumentPage,
    DocumentView,
    Hit,
    JobPage,
    Journal,
    Places,
    QueryReply,
    RebuildReply,
    VersionView,
)


def query(reply: QueryReply) -> None:
    """Each hit: rank, heading path, source with byte range, score, text."""
    if not reply.results:
        out("nothing found")
    for rank, hit in enumerate(reply.results, 1):
        _hit(rank, hit)


def _hit(rank: int, hit: Hit) -> None:
    path = breadcrumb(hit.title, tuple(hit.heading_path))[1:-1]
    until = f", until {hit.valid_until:%Y-%m-%d}" if hit.valid_until else ""
    out(f"{rank}. {clean(path, one_line=True)}")
    out(
        f"   {hit.score:.4f}  source {hit.source_id[:16]}  bytes {hit.byte_start}-{hit.byte_end}"
        f"  valid from {hit.valid_from:%Y-%m-%d}{until}"
    )
    for line in clean(hit.text).splitlines():
        out(f"   | {line}")
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


def _facts(view: VersionView) -> dict[str, Any]:
    facts = view.model_dump(exclude={"versions", "windows", "current"}, exclude_none=True)
    if view.error:
        facts["error"] = _error(view.error)
    return facts


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


def documents(page: DocumentPage) -> None:
    """One line a document."""
    for d in page.documents:
        name = clean(d.title or d.name, one_line=True)
        out(f"{d.document_id}  {d.status:<10} {d.chunk_count or 0:>5}  {name}")


def jobs(page: JobPage) -> None:
    """One line a job."""
    for j in page.jobs:
        error = f"  {clean(_error(j.error), one_line=True)}" if j.error else ""
        name = clean(j.name, one_line=True)
        out(f"{j.job_id}  {j.started_at:%Y-%m-%d %H:%M:%S}  {j.status:<10} {name}{error}")


def journal(entries: Journal) -> None:
    """One line an event, oldest first."""
    for e in entries.entries:
        event({"position": e.position, "time": e.at.isoformat(), "type": e.type, "data": e.data})


def event(cloud: Mapping[str, Any]) -> None:
    """An event: position, time, type, and what is its own."""
    type_ = str(cloud.get("type", "")).removeprefix("kb.")
    common = set(EVENTS["DocumentReceived"].model_fields) & set(EVENTS["Failed"].model_fields)
    data = {k: v for k, v in dict(cloud.get("data") or {}).items() if k not in common}
    text = clean(json.dumps(data, ensure_ascii=False), one_line=True)
    when = str(cloud.get("time", ""))[:19]
    out(f"{cloud.get('position', ''):>6}  {when}  {type_:<17} {text[:300]}")


def rebuilt(reply: RebuildReply) -> None:
    """One line a project."""
    for entry in reply.rebuilt:
        facts = entry.model_dump(exclude={"project"})
        out(f"{entry.project}: " + ", ".join(f"{name} {value}" for name, value in facts.items()))
