"""`kb context`: what a base knows of a question, as numbered sources for a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import asking
from cli.output import clean, note, out, raw
from contracts.passages import ContextReply


@asking.asks
def context(
    asked: dict[str, Any],
    data: Path,
    *,
    budget: Annotated[
        int | None, typer.Option("--budget", help="Tokens at most (3000), as the embedder counts.")
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
    json_: bool,
) -> None:
    """Numbered, fenced sources for a model. With --json exactly the reply of `POST /context`."""
    asked |= asking.given(budget=budget, neighbours=neighbours, section=section)
    asked |= {"order": "reading"} if reading else {}
    reply = asking.ask(data, "/context", asked)
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
