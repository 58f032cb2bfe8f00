"""`kb import`: a signed bundle becomes a project here, without parsing or embedding again."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.backup import told
from cli.copying import Copying, megabytes
from cli.datadir import DataDir
from cli.export import keys_of
from cli.output import CliError, as_json, note, out
from cli.owner import stores
from cli.restore import make_index
from kernel.errors import KbError, Refusal
from kernel.signing import Keys


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle of kb export.")],
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    trust: Annotated[
        str | None, typer.Option("--trust", help="Believe this public key from now on.")
    ] = None,
    no_index: Annotated[
        bool, typer.Option("--no-index", help="Do not make the index now: kb rebuild later.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bring a project in from another installation: ids, citations and history stay as they are.

    Whoever signed the file is believed in what it says of the texts, that they are clean too: a key
    that is not known is asked for. Nothing is written before everything was checked.
    """
    target, keys = DataDir(data.absolute()), keys_of(DataDir(data.absolute()))
    started = time.monotonic()
    try:
        if trust is not None:
            keys.trust(trust)
        imported, up, key = asyncio.run(_run(target, file, keys, quiet=json_))
        rebuilt = make_index(target, imported.project) if up and not no_index else None
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        raise CliError(
            "nothing was imported", f"{error.strerror}: {error.filename or file}"
        ) from error
    _report(imported, rebuilt, key, time.monotonic() - started, json_=json_)


async def _run(target: DataDir, file: Path, keys: Keys, *, quiet: bool) -> tuple[Any, bool, str]:
    from kernel.bundle_check import Bundle
    from kernel.importing import bring_in

    with Bundle(file) as bundle:
        key = bundle.signed_by()
        if key not in keys.trusted():
            _ask(key, file)
            keys.trust(key)
        await bundle.check()
        async with stores(target) as opened:
            with Copying("import", quiet=quiet) as progress:
                done = await bring_in(opened.dsn, opened.blobs, bundle, "cli", progress=progress)
            return done, opened.up, key


def _ask(key: str, file: Path) -> None:
    """First use: a person says whether the key is whose they think.

    Raises:
        Refusal: `untrusted-key`: no, or nobody is there to ask.
    """
    if sys.stdin.isatty() and os.isatty(2):
        note(f"{file} is signed by {key}, which is not known here.")
        if typer.confirm("Is it whose you think it is, and do you believe them?", err=True):
            return
    raise Refusal("untrusted-key", f"signed by {key}: --trust {key} if that is whom you believe")


def _report(
    imported: Any, rebuilt: list[dict[str, Any]] | None, key: str, seconds: float, *, json_: bool
) -> None:
    if json_:
        as_json(
            {"project": imported.project, "events": imported.events, "known": imported.known,
             "left_there": imported.local, "blobs": imported.blobs, "bytes": imported.blob_bytes,
             "vectors": imported.vectors, "erased_here": imported.erased, "key": key,
             "position": imported.position, "rebuilt": rebuilt, "seconds": round(seconds, 3)}
        )  # fmt: skip
        return
    out(f"{imported.project}: {imported.events:,} events, {imported.blobs:,} blobs "
        f"({megabytes(imported.blob_bytes)}), {seconds:.1f} s")  # fmt: skip
    if imported.known:
        note(f"{imported.known:,} events were here already")
    if imported.local:
        note(f"{imported.local:,} events about the other installation itself stayed there")
    if imported.erased:
        note(f"{imported.erased} versions were erased here: they stay erased")
    for row in rebuilt or ():
        out(f"index: {row['passages']:,} passages, {row['embedded']:,} of them embedded")
    if rebuilt is None:
        out(f"now: kb rebuild --project {imported.project}")
