"""`kb query`: passages for a question, at two times, over one or several knowledge bases."""

from typing import Annotated, Any

import typer

from cli import asking, show
from cli.datadir import DataDir
from cli.output import raw
from contracts.query import QueryReply


def query(  # noqa: PLR0913, PLR0917 - every option is a parameter
    text: asking.Text,
    data: asking.Data = asking.DATA,
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
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each passage and of the reply why.")
    ] = False,
    json_: asking.Json = False,
) -> None:
    """Find passages. With --json exactly the reply of `POST /query`."""
    options: dict[str, Any] = dict(locals())
    del options["data"], options["json_"]
    from cli.client import call

    reply = call(DataDir(data.absolute()), "POST", "/query", json=asking.body(options))
    if json_:
        raw(reply.content)
    else:
        several = len(project or []) > 1
        show.query(QueryReply.model_validate_json(reply.content), projects=several)
