"""`kb context`: what a base knows of a question, as numbered sources for a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import clean, note, out, raw
from contracts.passages import ContextReply


def context(  # noqa: PLR0913, PLR0917 - every option is a parameter
    text: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    budget: Annotated[
        int | None, typer.Option("--budget", help="Tokens at most (3000), as the embedder counts.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="Passages that are looked at (20).")
    ] = None,
    neighbours: Annotated[
        int | None, typer.Option("--neighbours", help="So many passages around each.")
    ] = None,
    section: Annotated[
        bool, typer.Option("--section", help="The whole section around each, where it fits.")
    ] = False,
    reading: Annotated[
        bool, typer.Option("--reading", help="In the order of the texts; else the best first.")
    ] = False,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="What was valid on that day (or instant).")
    ] = None,
    recorded_as_of: Annotated[
        str | None, typer.Option("--recorded-as-of", help="By what was known on that day.")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option("--project", help="The knowledge base; again for several at once."),
    ] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Numbered, fenced sources for a model. With --json exactly the reply of `POST /context`."""
    from cli.client import call

    given: dict[str, Any] = {
        "query": sys.stdin.read() if text == "-" else text, "budget": budget, "top_k": top_k,
        "neighbours": neighbours, "section": section or None,
        "order": "reading" if reading else None, "as_of": as_of, "recorded_as_of": recorded_as_of,
        "projects": project,
    }  # fmt: skip
    body = {name: value for name, value in given.items() if value is not None}
    reply = call(DataDir(data.absolute()), "POST", "/context", json=body)
    if json_:
        raw(reply.content)
        return
    told = ContextReply.model_validate_json(reply.content)
    if told.context:
        out(clean(told.context))
    note(f"{len(told.sources)} sources, {told.tokens} of {told.budget} tokens{_missing(told)}")


def _missing(told: ContextReply) -> str:
    parts = [f"{told.left_out} passages left out"] if told.left_out else []
    parts += ["the passage is cut"] if any(source.cut for source in told.sources) else []
    return "".join(f"; {part}" for part in parts)
