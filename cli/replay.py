"""`kb replay`: events of the log once more, to a file, a subject, a projection, or here."""

from pathlib import Path
from typing import Annotated

import typer

from cli.datadir import DataDir


def replay(  # noqa: PLR0913, PLR0917 - every option is a parameter
    from_: Annotated[
        str | None, typer.Option("--from", help="From this position, day or instant on.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Up to this position, or before this day or instant."),
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Only these events: Parsed, Erased, …")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Only this knowledge base.")
    ] = None,
    stream: Annotated[
        str | None, typer.Option("--stream", help="Only this stream: document-…, version-…")
    ] = None,
    current: Annotated[
        bool, typer.Option("--current", help="Events of old versions in their current shape.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--out", help="File to write; - is standard output.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", help="Subject of the bus to publish to.")
    ] = None,
    jetstream: Annotated[
        bool, typer.Option("--jetstream", help="A stream has to store what is published.")
    ] = False,
    projection: Annotated[
        str | None, typer.Option("--projection", help="read or index: made anew from all events.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, do nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier replay broke off.")
    ] = False,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Read events of the log once more, in order: JSON lines, one CloudEvent each.

    To standard output, --out a file, --subject, or --projection. A file or subject that broke off
    is finished by the same command with --resume; one that was finished is brought up to date.
    """
    from cli import replaying

    which = {"type": type_ or None, "project": project, "stream": stream}
    given = replaying.Options(
        from_=from_,
        until=until,
        which={name: value for name, value in which.items() if value is not None},
        current=current,
        to=to,
        subject=subject,
        jetstream=jetstream,
        projection=projection,
        dry_run=dry_run,
        resume=resume,
        json_=json_,
    )
    replaying.replay(DataDir(data.absolute()), given)
