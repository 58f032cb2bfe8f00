"""`kb query`: passages for a question, at two times, over one or several knowledge bases."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import asking, show
from cli.output import raw
from contracts.query import QueryReply


@asking.asks
def query(
    asked: dict[str, Any],
    data: Path,
    *,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each passage and of the reply why.")
    ] = False,
    json_: bool,
) -> None:
    """Find passages. With --json exactly the reply of `POST /query`."""
    reply = asking.ask(data, "/query", asked | asking.given(explain=explain))
    if json_:
        raw(reply.content)
    else:
        several = "projects" in asked
        show.query(QueryReply.model_validate_json(reply.content), projects=several)
