"""`kb backup`: everything at one position, into a folder of several backups."""

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.copying import Copying, megabytes
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from cli.owner import settings_of, stores
from kernel.errors import KbError

Folder = Annotated[Path, typer.Argument(metavar="DIR", envvar="KB_BACKUPS", help="The backups.")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SECRET = re.compile("KEY|PASSWORD|SECRET|TOKEN|URL|CREDENTIAL")
_MADE = re.compile("KB_(API_KEY|DOOR_KEY_|OWNER_PASSWORD|DB_PASSWORD_|BUS_PASSWORD_)")
_PLACES = frozenset({"KB_BLOBS", "KB_BACKUPS", "KB_DROPZONE", "KB_DATA", "KB_MODEL_CACHE"})
"""What is elsewhere on another machine; a restore must not write into the stores of this one."""


def backup(
    folder: Folder,
    data: Data = Path("data"),
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Vectors too: a restore embeds nothing anew.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Only say which backups there are.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only read a backup from end to end.")
    ] = False,
    at: Annotated[
        str | None, typer.Option("--at", help="With --verify: which one; an id, or a time.")
    ] = None,
    json_: Json = False,
) -> None:
    """Copy the database and the bytes, at one position of the log, while everything runs.

    DIR may be used again and again: bytes that are there are not copied twice. Exit 1 when bytes
    that the log names were missing or damaged in the store (the rest is backed up).
    """
    if at is not None and not verify:
        raise CliError("--at goes with --verify", "kb restore has it too")
    try:
        if list_:
            _list(folder, json_=json_)
        elif verify:
            _verify(folder, at, json_=json_)
        else:
            _backup(DataDir(data.absolute()), folder, with_vectors=with_vectors, json_=json_)
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        raise CliError(
            "no backup was made", f"{error.strerror}: {error.filename or folder}"
        ) from error


def told(error: KbError) -> CliError:
    """An error of the kernel as one of the command line."""
    if isinstance(error, CliError):
        return error
    return CliError(getattr(error, "reason", str(error)), type_=getattr(error, "code", ""))


def shareable(settings: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Settings of `.env` that a backup may hold, and names of those that a person sets again. The
    secrets that `kb up` makes by itself are neither."""
    own = {k: v for k, v in settings.items() if not _MADE.match(k) and k != "KB_ADMIN_CREATED"}
    left_out = sorted(k for k in own if _SECRET.search(k) or k in _PLACES or k[:3] != "KB_")
    return {k: v for k, v in own.items() if k not in left_out}, left_out


def _backup(data: DataDir, folder: Path, *, with_vectors: bool, json_: bool) -> None:
    from kernel.backup import Made, Settings
    from kernel.backup import backup as make
    from kernel.repository import Repository

    kept, left_out = shareable(data.settings({}))

    async def run() -> Made:
        async with stores(data) as opened:
            with Copying("backup", quiet=json_) as progress:
                return await make(
                    opened.dsn,
                    opened.blobs,
                    Repository(folder),
                    settings=Settings(kept, left_out),
                    with_vectors=with_vectors,
                    progress=progress,
                )

    started = time.monotonic()
    made = asyncio.run(run())
    seconds = time.monotonic() - started
    manifest = made.manifest
    whole = not (manifest.missing or manifest.damaged)
    if json_:
        as_json(
            {"ok": whole, "copied": made.copied, "copied_bytes": made.copied_bytes,
             "erased": made.erased, "seconds": round(seconds, 3)} | _row(manifest)
        )  # fmt: skip
    else:
        out(f"backup {manifest.id}: position {manifest.position:,}, {_held(manifest)}")
        note(f"{made.copied} of them new ({megabytes(made.copied_bytes)}), {seconds:.1f} s")
        if made.erased:
            note(f"{made.erased} blobs of erased documents were taken out of the folder")
        for word, names in (("missing", manifest.missing), ("damaged", manifest.damaged)):
            if names:
                note(f"error: {len(names)} blobs are {word} in the store, {names[0][:16]}… first")
        if configured := settings_of(data).get("KB_BACKUPS"):
            if Path(configured).absolute() != folder.absolute():
                note(f"erasures are told to {configured}; here they arrive with the next backup")
        else:
            note(f"erasures reach it with the next backup; at once with KB_BACKUPS={folder}")
    raise typer.Exit(0 if whole else 1)


def _list(folder: Path, *, json_: bool) -> None:
    from kernel.repository import Repository

    repository = Repository(folder)
    repository.check()
    rows: list[dict[str, Any]] = []
    for id_ in repository.ids():
        try:
            manifest = repository.manifest(id_)
        except KbError as error:
            rows.append({"id": id_, "error": str(error)})
            continue
        rows.append(_row(manifest))
        if not json_:
            out(f"{id_}  {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC  position "
                f"{manifest.position:,}, {_held(manifest)}")  # fmt: skip
    if json_:
        as_json({"backups": rows, "tombstones": len(repository.tombstones())})
        return
    for row in rows:
        if "error" in row:
            note(f"error: {row['error']}")
    if not rows:
        out("no backup yet")


def _verify(folder: Path, at: str | None, *, json_: bool) -> None:
    from kernel.backup import verify
    from kernel.repository import Repository

    repository = Repository(folder)
    manifest = repository.choose(at)
    checked = asyncio.run(verify(repository, manifest))
    if json_:
        as_json(
            {"ok": checked.ok, "id": checked.id, "blobs": checked.blobs, "bytes": checked.bytes,
             "missing": checked.missing, "damaged": checked.damaged}
        )  # fmt: skip
    elif checked.ok:
        out(f"backup {checked.id} is whole: {checked.blobs:,} blobs, {megabytes(checked.bytes)}")
    else:
        out(f"backup {checked.id}: {len(checked.missing)} blobs missing, {len(checked.damaged)} "
            "damaged and set aside: the next backup brings them again")  # fmt: skip
    raise typer.Exit(0 if checked.ok else 1)


def _held(manifest: Any) -> str:
    blobs = manifest.blobs
    return f"{blobs.count:,} blobs, {megabytes(blobs.content_bytes)}"


def _row(manifest: Any) -> dict[str, Any]:
    return {
        "id": manifest.id,
        "created_at": manifest.created_at.isoformat(),
        "version": manifest.version,
        "position": manifest.position,
        "fingerprint": manifest.fingerprint,
        "blobs": manifest.blobs.count,
        "bytes": manifest.blobs.content_bytes,
        "vectors": manifest.vectors,
        "missing": list(manifest.missing),
        "damaged": list(manifest.damaged),
    }
