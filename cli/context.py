"""`kb context`: what a base knows of a question, as numbered sources for a model."""

from typing import Annotated, Any

import typer

from cli import asking
from cli.datadir import DataDir
from cli.output import clean, note, out, raw
from contracts.passages import ContextReply


def context(  # noqa: PLR0913, PLR0917 - every option is a parameter
    text: asking.Text,
    data: asking.Data = asking.DATA,
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
    top_k: asking.TopK = None,
    as_of: asking.AsOf = None,
    recorded_as_of: asking.RecordedAsOf = None,
    include_historical: asking.Historical = False,
    min_position: asking.MinPosition = None,
    min_score: asking.MinScore = None,
    project: asking.Projects = None,
    heading: asking.Heading = None,
    language: asking.Language = None,
    type_: asking.Type = None,
    document: asking.Document = None,
    tag: asking.Tag = None,
    class_: asking.Class = None,
    dated_from: asking.DatedFrom = None,
    dated_until: asking.DatedUntil = None,
    received_from: asking.ReceivedFrom = None,
    received_until: asking.ReceivedUntil = None,
    max_distance: asking.MaxDistance = None,
    no_fold: asking.NoFold = False,
    json_: asking.Json = False,
) -> None:
    """Numbered, fenced sources for a model. With --json exactly the reply of `POST /context`."""
    options: dict[str, Any] = dict(locals())
    del options["data"], options["json_"]
    from cli.client import call

    body = asking.body(options)
    if body.pop("reading", False):
        body["order"] = "reading"
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
