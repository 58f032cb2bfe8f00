"""`kb doc passage`: the words behind a citation, and what surrounds them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, clean, out, path_part, raw
from contracts.artifacts import breadcrumb
from contracts.passages import PassageView


def passage(  # noqa: PLR0913, PLR0917 - every option is a parameter
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="A document, a version, a source key or bytes.")
    ],
    start: Annotated[int | None, typer.Option("--start", min=0, help="First byte.")] = None,
    end: Annotated[int | None, typer.Option("--end", min=1, help="Byte behind the last.")] = None,
    chunk: Annotated[
        str | None, typer.Option("--chunk", help="Instead of bytes: the chunk_id of a result.")
    ] = None,
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="So many passages before and after it.")
    ] = 0,
    exact: Annotated[bool, typer.Option("--raw", help="The bytes, and nothing else.")] = False,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="What was valid on that day (or instant).")
    ] = None,
    recorded_as_of: Annotated[
        str | None, typer.Option("--recorded-as-of", help="By what was known on that day.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="Where names are.")] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The exact words of a passage, its section, and where in the original they stand."""
    from cli.client import call
    from cli.naming import document_id

    if (chunk is None) == (start is None or end is None):
        raise CliError("say which passage", "--start and --end, or --chunk")
    where = DataDir(data.absolute())
    given: dict[str, Any] = {
        "start": start, "end": end, "chunk": chunk, "neighbours": neighbours or None,
        "raw": exact or None, "as_of": as_of, "recorded_as_of": recorded_as_of,
    }  # fmt: skip
    params = {name: value for name, value in given.items() if value is not None}
    id_ = document_id(where, id_, project)
    reply = call(where, "GET", f"/documents/{path_part(id_)}/passage", params=params)
    if json_ or exact:
        raw(reply.content)
    else:
        show(PassageView.model_validate_json(reply.content))


def show(view: PassageView) -> None:
    """The passage with a mark before each of its lines; neighbours without."""
    path = breadcrumb(view.title, tuple(view.heading_path))[1:-1]
    until = f", until {view.valid_until:%Y-%m-%d}" if view.valid_until else ""
    out(clean(path, one_line=True))
    out(
        f"{clean(view.source, one_line=True)}  version {view.version_id}  "
        f"bytes {view.byte_start}-{view.byte_end}  valid from {view.valid_from:%Y-%m-%d}{until}"
    )
    for name, section in (("section", view.section), ("around it", view.parent)):
        if section:
            heading = section.heading_path[-1] if section.heading_path else "(no heading)"
            bytes_ = f"bytes {section.byte_start}-{section.byte_end}"
            out(f"{name:<9} {clean(heading, one_line=True)}  {bytes_}")
    pages = sorted({span.place.page for span in view.spans if span.place.page is not None})
    if pages:
        out(f"pages     {', '.join(map(str, pages))}")
    out()
    for text, mark in (
        *((n.text, " ") for n in view.before),
        (view.text, "|"),
        *((n.text, " ") for n in view.after),
    ):
        for line in clean(text).splitlines():
            out(f"{mark} {line}".rstrip())
        out()
