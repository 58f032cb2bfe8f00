"""`kb export`: a project as one signed bundle, or as plain folders."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from cli.backup import told
from cli.copying import Copying, megabytes
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from cli.owner import stores
from kernel.errors import KbError
from kernel.signing import Keys


def export(
    project: Annotated[str, typer.Argument(metavar="PROJECT")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle to write.")],
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Vectors too: nothing is embedded elsewhere.")
    ] = False,
    without_missing: Annotated[
        bool, typer.Option("--without-missing", help="Go on if the store lost bytes.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write all of a project into one file: its history, sources, texts, cuts. See kb import.

    The file is signed with a key of this installation; whoever imports it is asked to believe the
    public key that is printed here. Tell it to them on another way than the file.
    """
    from kernel.bundle import Exported
    from kernel.bundle import export as write

    target = DataDir(data.absolute())

    async def run() -> Exported:
        async with stores(target) as opened:
            with Copying("export", quiet=json_) as progress:
                return await write(
                    opened.dsn,
                    opened.blobs,
                    project,
                    file.absolute(),
                    keys_of(target),
                    with_vectors=with_vectors,
                    without_missing=without_missing,
                    progress=progress,
                )

    started = time.monotonic()
    try:
        made = asyncio.run(run())
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        raise CliError(
            "nothing was exported", f"{error.strerror}: {error.filename or file}"
        ) from error
    seconds, manifest = time.monotonic() - started, made.manifest
    if json_:
        as_json(
            {"project": project, "file": str(file), "bytes": made.file_bytes, "key": made.key,
             "sha256": made.sha256, "events": manifest.events, "position": manifest.position,
             "members": len(manifest.members), "missing": list(manifest.missing),
             "vectors": list(manifest.vectors), "seconds": round(seconds, 3)}
        )  # fmt: skip
        return
    out(f"{project}: {manifest.events:,} events, {len(manifest.members) - 1:,} blobs, "
        f"{megabytes(made.file_bytes)}, {seconds:.1f} s")  # fmt: skip
    if manifest.missing:
        note(f"error: {len(manifest.missing)} blobs were missing and are not in it")
    out(f"signed by {made.key}")


def keys_of(data: DataDir) -> Keys:
    """The keys of an installation."""
    return Keys(data.root / "keys")
