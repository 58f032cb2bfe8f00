"""`kb query`: passages for a question, at two times, over one or several knowledge bases."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import show
from cli.datadir import DataDir
from cli.output import raw
from contracts.query import QueryReply

DATA = Path("data")


def query(  # noqa: PLR0913, PLR0917 - every option is a parameter
    text: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = DATA,
    top_k: Annotated[int | None, typer.Option("--top-k", help="How many passages.")] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="What was valid on that day (or instant).")
    ] = None,
    recorded_as_of: Annotated[
        str | None,
        typer.Option(
            "--recorded-as-of",
            help="By what was known on that day (or instant): which versions there were, and when "
            "they were valid. Without --as-of also what was valid then.",
        ),
    ] = None,
    include_historical: Annotated[
        bool, typer.Option("--include-historical", help="Also versions that were replaced.")
    ] = False,
    min_position: Annotated[
        int | None,
        typer.Option(
            "--min-position", min=0, help="Wait until what a write replied as position is seen."
        ),
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option("--project", help="The knowledge base; again for several at once."),
    ] = None,
    heading: Annotated[
        list[str] | None,
        typer.Option("--heading", help="Under this heading; again for the one below it."),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Passages in it; again for another.")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", help="Files of a kind: pdf, word, docx, text/html; again for more."),
    ] = None,
    document: Annotated[
        list[str] | None, typer.Option("--document", help="Of this document; again for another.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="With this tag; again: and with that one.")
    ] = None,
    class_: Annotated[
        list[str] | None, typer.Option("--class", help="In this class; again: or in that one.")
    ] = None,
    dated_from: Annotated[
        str | None, typer.Option("--dated-from", help="Valid since that day or later.")
    ] = None,
    dated_until: Annotated[
        str | None, typer.Option("--dated-until", help="Valid since that day or earlier.")
    ] = None,
    received_from: Annotated[
        str | None, typer.Option("--received-from", help="Received on that day or later.")
    ] = None,
    received_until: Annotated[
        str | None, typer.Option("--received-until", help="Received on that day or earlier.")
    ] = None,
    max_distance: Annotated[
        float | None,
        typer.Option("--max-distance", min=0, max=2, help="Nothing farther by its vector."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--no-fold", help="Near-identical passages each by itself.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each passage and of the reply why.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find passages. With --json exactly the reply of `POST /query`."""
    from cli.client import call

    projects = project or ["default"]
    several = len(projects) > 1
    given: dict[str, Any] = {
        "query": sys.stdin.read() if text == "-" else text, "top_k": top_k, "as_of": as_of,
        "recorded_as_of": recorded_as_of, "include_historical": include_historical or None,
        "min_position": min_position, "projects": projects if several else None,
        "project": None if several else projects[0], "explain": explain or None,
        "heading_prefix": heading, "languages": language, "types": type_, "documents": document,
        "tags": tag, "classes": class_, "dated_from": dated_from, "dated_until": dated_until,
        "received_from": received_from, "received_until": received_until,
        "max_distance": max_distance, "fold": False if all_ else None,
    }  # fmt: skip
    body = {name: value for name, value in given.items() if value is not None}
    reply = call(DataDir(data.absolute()), "POST", "/query", json=body)
    if json_:
        raw(reply.content)
    else:
        show.query(QueryReply.model_validate_json(reply.content), projects=several)
