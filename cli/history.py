"""`kb history`: the versions of a document in both times, who sent them, what changed."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.datadir import DataDir
from cli.diff import counts
from cli.output import clean, path_part, raw
from contracts.diff import History, HistoryEntry, SectionKind

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 200
"""Columns of a table that goes to no terminal."""


def history(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A document, a version, a source key, a file name, or bytes."
        ),
    ],
    project: Annotated[str | None, typer.Option("--project", help="Where names are.")] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The line of a document, newest first: valid when, known since when, who, why, changes."""
    from cli.client import call
    from cli.naming import document_id

    where = DataDir(data.absolute())
    id_ = document_id(where, source, project)
    reply = call(where, "GET", f"/documents/{path_part(id_)}/history")
    if json_:
        raw(reply.content)
        return
    show(History.model_validate_json(reply.content))


def show(told: History, console: "Console | None" = None) -> None:
    """A table; `*` is the version that is valid now."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    title = clean(told.title, one_line=True)
    console.print(Text(f"{title}  ({told.document_id}, {clean(told.project)})", style="bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "valid", "known since", "why", "by", "changes", "version"):
        table.add_column(name, no_wrap=name in {"valid", "known since", "version"})
    for entry in told.entries:
        table.add_row(*(Text(clean(cell, one_line=True)) for cell in _cells(entry)))
    console.print(table)


def _cells(entry: HistoryEntry) -> tuple[str, ...]:
    why = entry.cause if entry.valid_from else entry.status
    return (
        "*" if entry.current else "",
        f"{_day(entry.valid_from)} – {_day(entry.valid_until)}" if entry.valid_from else "never",
        _instant(entry.recorded_at),
        why,
        f"{entry.actor} ({entry.via})",
        _changes(entry.changes),
        entry.version_id,
    )


def _changes(found: dict[SectionKind, int] | None) -> str:
    if found is None:
        return ""
    return counts({k: n for k, n in found.items() if k != "same"}) or "nothing"


def _day(moment: datetime | None) -> str:
    """A day where it is one, else the instant."""
    if moment is None:
        return ""
    whole = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    return f"{moment:%Y-%m-%d}" if whole else f"{moment:%Y-%m-%d %H:%M}"


def _instant(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""
