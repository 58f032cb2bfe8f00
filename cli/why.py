"""`kb why`: why a passage is not among the answers to a question."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import asking
from cli.output import clean, out, raw
from contracts.artifacts import breadcrumb
from contracts.why import Ahead, LegWhy, WhyReply


@asking.asks
def why(
    asked: dict[str, Any],
    data: Path,
    *,
    chunk: Annotated[str, typer.Argument(help="The passage: the chunk_id of a hit or a source.")],
    version: Annotated[
        str | None, typer.Option("--version", help="Whose, where several have one of that name.")
    ] = None,
    json_: bool,
) -> None:
    """Ask as `kb query` does, with the same options, and tell what became of one passage."""
    fields = asking.given(chunk=chunk, version=version)
    reply = asking.ask(data, "/query/why", asked | fields)
    if json_:
        raw(reply.content)
    else:
        _show(WhyReply.model_validate_json(reply.content))


def _show(told: WhyReply) -> None:
    out(f"{told.reason}: {clean(told.why, one_line=True)}")
    if told.version_id is not None and told.project is not None:
        where = breadcrumb(told.title or "", tuple(told.heading_path))[1:-1]
        out(f"passage    {clean(where, one_line=True)}")
        out(f"           {told.project}, version {told.version_id}, generation {told.generation}")
    if len(told.versions) > 1:
        out(f"           {len(told.versions)} versions have one of that name (--version)")
    for window in told.windows:
        until = "" if window.valid_until is None else f" until {window.valid_until:%Y-%m-%d %H:%M}"
        out(f"valid      from {window.valid_from:%Y-%m-%d %H:%M}{until}")
    for name, leg in (("dense", told.dense), ("keyword", told.keyword)):
        if leg is not None:
            _leg(name, leg, told)
    if told.fused_rank is not None:
        score = "" if told.rerank_score is None else f", reranked {told.rerank_score:.4f}"
        place = "" if told.place is None else f", place {told.place} of what may be shown"
        out(f"fused      rank {told.fused_rank}{score}{place}")
    if told.twin_of is not None:
        out(f"twin of    {_ahead(told.twin_of)}")


def _leg(name: str, leg: LegWhy, told: WhyReply) -> None:
    rank = f"rank {leg.rank}" if leg.rank else f"not among the first {told.looked}"
    depth = "" if leg.brought else f"; the leg brought at most {told.depth}"
    score = "" if leg.score is None else f", {leg.score:.4f}"
    words = f", words: {clean(', '.join(leg.words), one_line=True)}" if leg.words else ""
    out(f"{name:<10} {rank}{score}{words}{depth}")
    for ahead in leg.before:
        out(f"           after {ahead.score:.4f} {_ahead(ahead)}")


def _ahead(ahead: Ahead) -> str:
    where = breadcrumb(ahead.title, tuple(ahead.heading_path))[1:-1]
    return f"{clean(where, one_line=True)} ({clean(ahead.chunk_id, one_line=True)})"
