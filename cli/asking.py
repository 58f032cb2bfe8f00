"""The options of a question, for every command that asks one."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.datadir import DataDir

if TYPE_CHECKING:
    import httpx

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


def _options(  # noqa: PLR0913, PLR0917 - every option is a parameter
    text: Text,
    data: Data = DATA,
    top_k: TopK = None,
    as_of: AsOf = None,
    recorded_as_of: RecordedAsOf = None,
    include_historical: Historical = False,
    min_position: MinPosition = None,
    min_score: MinScore = None,
    project: Projects = None,
    heading: Heading = None,
    language: Language = None,
    type_: Type = None,
    document: Document = None,
    tag: Tag = None,
    class_: Class = None,
    dated_from: DatedFrom = None,
    dated_until: DatedUntil = None,
    received_from: ReceivedFrom = None,
    received_until: ReceivedUntil = None,
    max_distance: MaxDistance = None,
    no_fold: NoFold = False,
    json_: Json = False,
) -> None:
    """Only its signature is read."""


_SHARED = tuple(signature(_options).parameters.values())
_PASSED_ON = ("data", "json_")


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """A command that has the options of a question besides its own.

    It is called with the body of a request, then by name with `data`, `json_` and its own options.
    """
    known = {"asked", *(p.name for p in _SHARED)}
    own = [p for p in signature(command).parameters.values() if p.name not in known]
    every = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in (_SHARED[0], *own, *_SHARED[1:])]

    @wraps(command)
    def run(**options: Any) -> None:
        shared = [p.name for p in _SHARED if p.name not in _PASSED_ON]
        asked = _body({name: options.pop(name) for name in shared})
        command(asked, **options)

    run.__signature__ = Signature(every)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {p.name: p.annotation for p in every}
    return run


def given(**fields: Any) -> dict[str, Any]:
    """Those that were given; 0 is."""
    return {n: value for n, value in fields.items() if value is not None and value is not False}


def ask(data: Path, path: str, body: dict[str, Any]) -> "httpx.Response":
    """The reply of the front door."""
    from cli.client import call

    return call(DataDir(data.absolute()), "POST", path, json=body)


def _body(options: dict[str, Any]) -> dict[str, Any]:
    """A request: what was given, by the names of its fields."""
    fields = given(**{_NAMES.get(name, name): value for name, value in options.items()})
    if fields["query"] == "-":
        fields["query"] = sys.stdin.read()
    projects = fields.pop("project", None) or ["default"]
    fields |= {"projects": projects} if len(projects) > 1 else {"project": projects[0]}
    return fields | ({"fold": False} if fields.pop("no_fold", False) else {})
