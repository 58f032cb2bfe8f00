"""`kb diff`: what changed between two versions, by section, with the words marked."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.datadir import DataDir
from cli.output import CliError, clean, path_part, raw
from contracts.diff import DiffReply, DiffSide, Hunk, Piece, SectionDiff, SectionKind
from kernel.reflow import reflow

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

KINDS: tuple[SectionKind, ...] = ("changed", "added", "removed", "renamed", "moved", "same")
SIGNS = {"changed": "~", "added": "+", "removed": "-", "renamed": "~", "moved": ">", "same": " "}
STYLES = {
    "changed": "yellow", "added": "green", "removed": "red", "renamed": "yellow", "moved": "cyan",
    "same": "dim",
}  # fmt: skip
MARKS = {"removed": ("[-", "-]"), "added": ("{+", "+}"), "same": ("", "")}
"""Around words where there is no colour, as other tools write them."""


def diff(  # noqa: PLR0913, PLR0917 - every option is a parameter
    a: Annotated[
        str, typer.Argument(metavar="A", help="A document, version, source, name, or bytes.")
    ],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="What to compare it with, named likewise.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="A day (or instant, or version): what was then.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="A day (or instant, or version): what was then.")
    ] = None,
    recorded_as_of: Annotated[
        str | None, typer.Option("--recorded-as-of", help="By what was known on that day.")
    ] = None,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Name sections that are the same, too.")
    ] = False,
    project: Annotated[str | None, typer.Option("--project", help="Where names are.")] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What changed: from A to B, or in A between two days; by itself the last change of A."""
    from cli.client import call
    from cli.naming import document_id

    if b is not None and (from_ or to):
        raise CliError("two versions or two days, not both")
    where = DataDir(data.absolute())
    first = document_id(where, a, project)
    sides = {"from": from_, "to": to}
    if b is not None:
        sides = {"from": first, "to": document_id(where, b, project)}
    given = sides | {
        "recorded_as_of": recorded_as_of, "unchanged": "true" if unchanged else None,
    }  # fmt: skip
    params = {name: value for name, value in given.items() if value is not None}
    reply = call(where, "GET", f"/documents/{path_part(first)}/diff", params=params)
    if json_:
        raw(reply.content)
        return
    show(DiffReply.model_validate_json(reply.content))


def show(reply: DiffReply, console: "Console | None" = None) -> None:
    """A diff on a terminal in colour; elsewhere with marks, a paragraph a line."""
    from rich.console import Console
    from rich.padding import Padding

    console = console or Console(highlight=False)
    page = _Page(colour=console.is_terminal and not console.no_color)
    for indent, line in page.lines(reply):
        if console.is_terminal:
            console.print(Padding(line, (0, 0, 0, indent)))
        else:
            console.print(" " * indent + line.plain, markup=False, soft_wrap=True)


class _Page:
    """The lines of a diff, each with its indent."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def lines(self, reply: DiffReply) -> "Iterator[tuple[int, Text]]":
        yield 0, self._text(f"--- {_side(reply.old)}", "bold red")
        yield 0, self._text(f"+++ {_side(reply.new)}", "bold green")
        yield 0, self._text(counts(reply.counts) or "nothing to compare")
        for section in reply.sections:
            yield 0, self._text("")
            yield 0, self._heading(section)
            for hunk in section.hunks:
                yield 2, self._hunk(hunk)
            if section.coarse:
                yield 2, self._text("(too large to be told line by line)", "dim")
        if reply.left_out:
            yield 0, self._text(f"\nand {reply.left_out} sections more", "dim")

    def _heading(self, section: SectionDiff) -> "Text":
        from rich.text import Text

        place = section.new or section.old
        path = [*(place.heading_path if place else [])]
        above, own = path[:-1], path[-1:] or ["(before the first heading)"]
        kind = section.kind
        notes = [n for n in ("renamed", "moved") if getattr(section, n) and n != kind]
        label = " and ".join([kind, *notes])
        line = Text()
        line.append(f"{SIGNS[kind]} {label}  ", style=self._style(STYLES[kind]))
        for part in above:
            line.append(f"{clean(part, one_line=True)} > ", style=self._style("dim"))
        if section.heading:
            line.append_text(self._pieces(section.heading, one_line=True))
        else:
            line.append(clean(own[0], one_line=True), style=self._style("bold"))
        line.append(f"  {_places(section)}", style=self._style("dim"))
        return line

    def _hunk(self, hunk: Hunk) -> "Text":
        if hunk.left_out:
            what = "the same" if hunk.kind == "same" else f"{hunk.kind}, not shown"
            return self._text(f"  … {hunk.left_out} bytes {what}", "dim")
        from rich.text import Text

        line = Text()
        line.append(f"{SIGNS[hunk.kind]} ", style=self._style(STYLES[hunk.kind]))
        if hunk.kind == "same":
            line.append(_joined(hunk.pieces), style=self._style("dim"))
        else:
            line.append_text(self._pieces(hunk.pieces, whole=hunk.kind != "changed"))
        return line

    def _pieces(
        self, pieces: tuple[Piece, ...], *, one_line: bool = False, whole: bool = False
    ) -> "Text":
        """Words: coloured, or between marks. `whole`: the sign before the line says it all."""
        from rich.text import Text

        line = Text()
        for piece in pieces:
            text = clean(piece.text).replace("\n", " ") if one_line else _flat(piece.text)
            before, behind = ("", "") if self._colour or whole else MARKS[piece.kind]
            style = {"removed": "red strike", "added": "green", "same": ""}[piece.kind]
            line.append(f"{before}{text}{behind}", style=self._style(style))
        return line

    def _text(self, text: str, style: str = "") -> "Text":
        from rich.text import Text

        return Text(clean(text), style=self._style(style))

    def _style(self, style: str) -> str:
        return style if self._colour else ""


def _joined(pieces: tuple[Piece, ...]) -> str:
    return "".join(_flat(p.text) for p in pieces)


def _flat(text: str) -> str:
    """A paragraph on one line: how it is cut into lines says nothing."""
    return "\n  ".join(line for line in reflow(clean(text)).split("\n") if line)


def counts(found: dict[SectionKind, int]) -> str:
    """`2 changed, 1 added, 32 same`."""
    return ", ".join(f"{found[kind]} {kind}" for kind in KINDS if found.get(kind))


def _side(side: DiffSide) -> str:
    until = f"{side.valid_until:%Y-%m-%d}" if side.valid_until else "now"
    title = clean(side.title or side.name, one_line=True)
    return f"{title}, {side.valid_from:%Y-%m-%d} to {until}  ({side.version_id})"


def _places(section: SectionDiff) -> str:
    places = [f"{p.byte_start}-{p.byte_end}" for p in (section.old, section.new) if p is not None]
    return f"bytes {' to '.join(places)}"
