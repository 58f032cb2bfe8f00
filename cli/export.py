"""`kb export`: a project as one signed bundle, or as plain folders."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from cli.backup import told
from cli.copying import Copying, megabytes
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from cli.owner import stores
from kernel.errors import KbError
from kernel.signing import Keys


def export(  # noqa: PLR0913, PLR0917 - every option is a parameter
    project: Annotated[str, typer.Argument(metavar="PROJECT")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The bundle to write.")
    ] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Vectors too: nothing is embedded elsewhere.")
    ] = False,
    without_missing: Annotated[
        bool, typer.Option("--without-missing", help="Go on if the store lost bytes.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Instead: a new folder of Markdown and originals."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="With --folder: what was valid on that day.")
    ] = None,
    include_historical: Annotated[
        bool, typer.Option("--include-historical", help="With --folder: every version.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write all of a project into one file: its history, sources, texts, cuts. See kb import.

    The file is signed with a key of this installation; whoever imports it is asked to believe the
    public key that is printed here. Tell it to them on another way than the file.
    """
    if (file is None) == (folder is None):
        raise CliError("name a file, or --folder with a new folder")
    if folder is None and (as_of is not None or include_historical):
        raise CliError("a bundle holds all of a project", "--as-of goes with --folder")
    if as_of is not None and include_historical:
        raise CliError("--as-of and --include-historical exclude each other")
    try:
        if file is not None:
            wanted = Wanted(project, file, with_vectors, without_missing)
            _bundle(DataDir(data.absolute()), wanted, json_=json_)
        elif folder is not None:
            _folder(DataDir(data.absolute()), project, folder, as_of, include_historical, json_)
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        where = error.filename or file or folder
        raise CliError("nothing was exported", f"{error.strerror}: {where}") from error


@dataclass(frozen=True)
class Wanted:
    """What goes into a bundle."""

    project: str
    file: Path
    with_vectors: bool
    without_missing: bool


def _bundle(target: DataDir, wanted: Wanted, *, json_: bool) -> None:
    from kernel.bundle import Exported
    from kernel.bundle import export as write

    async def run() -> Exported:
        async with stores(target) as opened:
            with Copying("export", quiet=json_) as progress:
                return await write(
                    opened.dsn,
                    opened.blobs,
                    wanted.project,
                    wanted.file.absolute(),
                    keys_of(target),
                    with_vectors=wanted.with_vectors,
                    without_missing=wanted.without_missing,
                    progress=progress,
                )

    started = time.monotonic()
    made = asyncio.run(run())
    seconds, manifest = time.monotonic() - started, made.manifest
    if json_:
        as_json(
            {"project": wanted.project, "file": str(wanted.file), "bytes": made.file_bytes,
             "key": made.key, "sha256": made.sha256, "events": manifest.events,
             "position": manifest.position, "members": len(manifest.members),
             "missing": list(manifest.missing), "vectors": list(manifest.vectors),
             "seconds": round(seconds, 3)}
        )  # fmt: skip
        return
    out(f"{wanted.project}: {manifest.events:,} events, {len(manifest.members) - 1:,} blobs, "
        f"{megabytes(made.file_bytes)}, {seconds:.1f} s")  # fmt: skip
    if manifest.missing:
        note(f"error: {len(manifest.missing)} blobs were missing and are not in it")
    out(f"signed by {made.key}")


def _folder(
    target: DataDir, project: str, folder: Path, as_of: str | None, historical: bool, json_: bool
) -> None:
    from cli.folder import Written, write_folder
    from contracts.http import AsOf

    try:
        moment = None if as_of is None else TypeAdapter(AsOf).validate_python(as_of)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise CliError("--as-of is no day and no instant with zone", f"{as_of}: {reason}") from None

    place = folder.absolute()

    async def run() -> Written:
        async with stores(target) as opened:
            return await write_folder(
                opened.dsn, opened.blobs, project, place, as_of=moment,
                historical=historical,
            )  # fmt: skip

    written = asyncio.run(run())
    if json_:
        as_json({"project": project, "folder": str(folder), "documents": written.documents,
                 "versions": written.versions, "position": written.position})  # fmt: skip
        return
    out(f"{folder}: {written.documents:,} documents, {written.versions:,} versions")


def keys_of(data: DataDir) -> Keys:
    """The keys of an installation."""
    return Keys(data.root / "keys")
