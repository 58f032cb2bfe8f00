"""The options of a question, for every command that asks one."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Text = Annotated[str, typer.Argument(help="The question; - reads it from standard input.")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="How many passages.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="What was valid on that day (or instant).")
]
RecordedAsOf = Annotated[
    str | None,
    typer.Option(
        "--recorded-as-of",
        help="By what was known on that day (or instant): which versions there were, and when "
        "they were valid. Without --as-of also what was valid then.",
    ),
]
Historical = Annotated[
    bool, typer.Option("--include-historical", help="Also versions that were replaced.")
]
MinPosition = Annotated[
    int | None,
    typer.Option(
        "--min-position", min=0, help="Wait until what a write replied as position is seen."
    ),
]
Projects = Annotated[
    list[str] | None,
    typer.Option("--project", help="The knowledge base; again for several at once."),
]
Heading = Annotated[
    list[str] | None,
    typer.Option("--heading", help="Under this heading; again for the one below it."),
]
Language = Annotated[
    list[str] | None, typer.Option("--language", help="Passages in it; again for another.")
]
Type = Annotated[
    list[str] | None,
    typer.Option("--type", help="Files of a kind: pdf, word, docx, text/html; again for more."),
]
Document = Annotated[
    list[str] | None, typer.Option("--document", help="Of this document; again for another.")
]
Tag = Annotated[
    list[str] | None, typer.Option("--tag", help="With this tag; again: and with that one.")
]
Class = Annotated[
    list[str] | None, typer.Option("--class", help="In this class; again: or in that one.")
]
DatedFrom = Annotated[
    str | None, typer.Option("--dated-from", help="Valid since that day or later.")
]
DatedUntil = Annotated[
    str | None, typer.Option("--dated-until", help="Valid since that day or earlier.")
]
ReceivedFrom = Annotated[
    str | None, typer.Option("--received-from", help="Received on that day or later.")
]
ReceivedUntil = Annotated[
    str | None, typer.Option("--received-until", help="Received on that day or earlier.")
]
MaxDistance = Annotated[
    float | None,
    typer.Option("--max-distance", min=0, max=2, help="Nothing farther by its vector."),
]
MinScore = Annotated[
    float | None,
    typer.Option("--min-score", min=0, max=1, help="Nothing that the reranker scores below."),
]
NoFold = Annotated[bool, typer.Option("--no-fold", help="Near-identical passages each by itself.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DATA = Path("data")
_NAMES = {
    "text": "query", "heading": "heading_prefix", "language": "languages", "type_": "types",
    "document": "documents", "tag": "tags", "class_": "classes",
}  # fmt: skip


def body(options: dict[str, Any]) -> dict[str, Any]:
    """A request: what was given, by the names of its fields."""
    given = {_NAMES.get(name, name): value for name, value in options.items() if _given(value)}
    if given["query"] == "-":
        given["query"] = sys.stdin.read()
    projects = given.pop("project", None) or ["default"]
    given |= {"projects": projects} if len(projects) > 1 else {"project": projects[0]}
    return given | ({"fold": False} if given.pop("no_fold", False) else {})


def _given(value: Any) -> bool:
    return value is not None and value is not False
