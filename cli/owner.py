"""The stores of an installation, opened as their owner: to back up, restore, export, import."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.datadir import DataDir
from cli.output import CliError
from cli.plan import with_user
from cli.runstate import Lock, clear_leftovers, running
from kernel.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from kernel.blobs import Blobs


@dataclass(frozen=True)
class Stores:
    """Where they are; `up`: the services run."""

    dsn: str
    blobs: "Blobs"
    up: bool


def settings_of(data: DataDir) -> dict[str, str]:
    """What holds for the processes of a data folder: its `.env`, then the environment."""
    return data.settings(os.environ)


def make_secrets(data: DataDir) -> None:
    """Write the secrets that are neither in `.env` nor in the environment."""
    data.ensure_secrets(os.environ)


@asynccontextmanager
async def stores(data: DataDir, *, new: bool = False) -> AsyncIterator[Stores]:
    """The database and the blobs of a data folder, whether its services run or not. The embedded
    Postgres is started for as long as this is open.

    Args:
        data: the folder.
        new: make what is not there.

    Raises:
        CliError: there is no installation, or it starts or stops at this moment.
    """
    from kernel.blobs import Blobs

    settings = settings_of(data)
    state = running(data) if data.run.is_dir() else None
    url, folder = settings.get("KB_POSTGRES_URL"), data.root / "postgres"
    if not (new or url or folder.is_dir()):
        raise CliError("there is no installation", str(data.root))
    blobs = Blobs(settings.get("KB_BLOBS") or str(data.blobs))
    if url:
        yield Stores(url, blobs, state is not None)
        return
    password = settings.get("KB_OWNER_PASSWORD", "")
    if state is not None:
        found = [p.address for p in state.processes if p.kind == "postgres"]
        if not found:
            raise CliError("citelog starts or stops at this moment", "try again in a few seconds")
        yield Stores(with_user(found[0], "postgres", password), blobs, up=True)
        return
    data.prepare()
    lock = Lock(data)
    if not lock.take():
        raise CliError("citelog starts or stops at this moment", "try again in a few seconds")
    try:
        clear_leftovers(data)
        server = EmbeddedPostgres(folder, password=password, log_file=data.log_file("postgres"))
        server.start()
        try:
            yield Stores(server.dsn, blobs, up=False)
        finally:
            server.stop()
    finally:
        lock.release()
