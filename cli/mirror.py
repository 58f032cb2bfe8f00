"""`kb mirror`: the Markdown of all projects as a git repository, a projection of the log."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.backup import told
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from kernel.errors import KbError


def mirror(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A bare git repository of its own.")
    ],
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make it anew from the log; the commits are the same.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Keep a git mirror of the Markdown: a commit for each ingest and each new version.

    The same log makes the same commits. After an erasure the repository is made anew without the
    text; whoever cloned it before still has it.
    """
    from cli.mirroring import Mirror, Mirrored
    from cli.owner import stores
    from kernel.db import pool
    from kernel.log import Log

    def say(text: str) -> None:
        if not json_:
            note(text)

    async def run() -> Mirrored:
        async with stores(DataDir(data.absolute())) as opened:
            database = await pool(opened.dsn, service="kb-mirror")
            try:
                keeper = Mirror(folder.absolute(), Log(database), opened.blobs, say)
                return await keeper.keep(follow=follow, rebuild=rebuild)
            finally:
                database.terminate()

    try:
        done = asyncio.run(run())
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        raise CliError("the mirror stopped", f"{error.strerror}: {error.filename}") from error
    if json_:
        as_json({"head": done.head, "commits": done.commits, "files": done.files,
                 "position": done.position, "rebuilt": done.rebuilt})  # fmt: skip
    else:
        out(f"{done.files:,} files, {done.commits:,} new commits, head {done.head[:12]}")
