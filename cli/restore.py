"""`kb restore`: a backup becomes an installation in an empty folder."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.backup import told
from cli.copying import Copying, megabytes
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from cli.owner import make_secrets, settings_of, stores
from kernel.errors import KbError

_OURS = ("postgres", "postgres.new", "nats", "blobs", "logs", "run")
"""What a restore makes in the folder, besides `.env`."""
_MARK = "restoring"


def restore(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", envvar="KB_BACKUPS", help="The backups.")
    ],
    data: Annotated[Path, typer.Option("--data", help="A new, empty data folder.")],
    at: Annotated[
        str | None, typer.Option("--at", help="An id, or the newest until that time.")
    ] = None,
    without_damaged: Annotated[
        bool, typer.Option("--without-damaged", help="Bring the rest if blobs are damaged.")
    ] = False,
    no_index: Annotated[
        bool, typer.Option("--no-index", help="Do not make the index now: kb rebuild later.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a new installation from a backup: the log, the bytes, the people, then the index.

    What was erased after the backup was made stays erased. Passwords of the database and of the
    bus, and the API key, are new ones (DATA/.env); people sign in with the passwords they had.
    """
    target = DataDir(data.absolute())
    started = time.monotonic()
    try:
        restored = _restore(target, folder, at, without_damaged=without_damaged, quiet=json_)
        rebuilt = None if no_index else _index(target, restored.projects)
    except KbError as error:
        raise told(error) from error
    except OSError as error:
        what = f"{error.strerror}: {error.filename or target.root}"
        raise CliError("nothing was restored", what) from error
    _report(target, restored, rebuilt, time.monotonic() - started, json_=json_)


def _restore(
    target: DataDir, folder: Path, at: str | None, *, without_damaged: bool, quiet: bool
) -> Any:
    from kernel.repository import Repository
    from kernel.restore import Restored
    from kernel.restore import restore as bring_back

    repository = Repository(folder)
    manifest = repository.choose(at)
    _claim(target)
    try:
        make_secrets(target)

        async def run() -> Restored:
            async with stores(target, new=True) as opened:
                with Copying("restore", quiet=quiet) as progress:
                    return await bring_back(
                        opened.dsn,
                        opened.blobs,
                        repository,
                        manifest,
                        without_damaged=without_damaged,
                        progress=progress,
                    )

        restored = asyncio.run(run())
        there = settings_of(target)
        kept = {k: v for k, v in manifest.settings.items() if k not in there}
        if restored.accounts and "KB_ADMIN_CREATED" not in there:
            kept["KB_ADMIN_CREATED"] = "1"
        target.remember(kept)
    except BaseException:
        _unclaim(target)
        raise
    (target.root / _MARK).unlink()
    return restored


def _claim(target: DataDir) -> None:
    """Take an empty folder; one that a killed restore left is emptied first.

    Raises:
        CliError: there is something in it that no restore made. `.env` may be there: settings.
    """
    mark = target.root / _MARK
    if mark.exists():
        _unclaim(target)
    strange = [p.name for p in target.root.iterdir()] if target.root.exists() else []
    if strange := [name for name in strange if name != ".env"]:
        what = f"{target.root} has {strange[0]} in it"
        raise CliError("a backup is restored into a new folder", what)
    target.prepare()
    mark.touch(mode=0o600)


def _unclaim(target: DataDir) -> None:
    for name in _OURS:
        shutil.rmtree(target.root / name, ignore_errors=True)
    (target.root / _MARK).unlink(missing_ok=True)


def _index(target: DataDir, projects: Sequence[str]) -> list[dict[str, Any]]:
    """Start the services, make the index of each project, stop them.

    Raises:
        CliError: that failed; what was restored is whole all the same.
    """
    if not projects:
        return []
    _kb(target, "up", "--detach")
    try:
        return [row for project in projects for row in make_index(target, project)]
    except CliError as error:
        what = f"{error.title} {error.detail}; everything else is restored: kb up, kb rebuild"
        raise CliError("the index was not made", what) from error
    finally:
        _kb(target, "down")


def make_index(data: DataDir, project: str) -> list[dict[str, Any]]:
    """Have the running services make a project's index from the log.

    Raises:
        CliError: they refuse, or are not there.
    """
    import httpx

    from cli.client import call

    timeout = httpx.Timeout(None, connect=5)
    reply = call(data, "POST", "/rebuild", json={"project": project}, timeout=timeout)
    return list(reply.json()["rebuilt"])


def _kb(target: DataDir, *words: str) -> None:
    command = [sys.executable, "-P", "-m", "cli.main", *words, "--data", str(target.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CliError(f"kb {words[0]} failed", done.stderr[-500:])


def _report(
    target: DataDir,
    restored: Any,
    rebuilt: list[dict[str, Any]] | None,
    seconds: float,
    *,
    json_: bool,
) -> None:
    manifest = restored.manifest
    if json_:
        as_json(
            {"backup": manifest.id, "data": str(target.root), "position": restored.position,
             "events": restored.events, "blobs": restored.blobs, "bytes": restored.blob_bytes,
             "erased": restored.erased, "left_out": list(restored.left_out),
             "vectors": restored.vectors, "chain_faults": restored.faults,
             "settings_to_set": list(manifest.left_out),
             "rebuilt": rebuilt, "seconds": round(seconds, 3)}
        )  # fmt: skip
        return
    out(f"restored {manifest.id} into {target.root}: {restored.events:,} events, "
        f"{restored.blobs:,} blobs, {megabytes(restored.blob_bytes)}, {seconds:.1f} s")  # fmt: skip
    if restored.erased:
        note(f"{restored.erased} versions were erased after that backup: they stay erased")
    if restored.left_out:
        note(f"error: {len(restored.left_out)} blobs could not be brought back")
    if restored.faults:
        note(f"error: the log's hash chain is broken in {restored.faults} places: kb verify")
    if manifest.left_out:
        note(f"set these again in {target.env_file}: {', '.join(manifest.left_out)}")
    note(f"a new API key is in {target.env_file}")
    out(
        f"now: kb up --data {target.root}"
        + ("" if rebuilt is not None else ", then kb rebuild --all-projects")
    )
