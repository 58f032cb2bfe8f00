"""Real servers for the whole session, a fresh database for each test."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import settings

from kernel.embedded import EmbeddedNats, EmbeddedPostgres

TEMPLATE = "citelog_template"

# In CI the same examples each time: what they find is found while developing, where they are new
# with each run. No deadline for an example: how long one takes is what else the machine does.
settings.register_profile("any", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "any")


@pytest.fixture(scope="session")
def postgres_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of an empty Postgres, superuser `postgres`, no password."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres") / "data", fsync=False)
    yield server.start()
    server.stop()


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A nats-server with JetStream. Shared: a test names its own streams or purges them first."""
    server = EmbeddedNats(tmp_path_factory.mktemp("nats") / "data")
    yield server.start()
    server.stop()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[EmbeddedNats]:
    """A nats-server of the test's own, started: it may be killed and started again."""
    server = EmbeddedNats(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


def on_database(dsn: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


async def _execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def migrated_template(postgres_dsn: str) -> str:
    """The name of a database on which the migrations ran; no connection to it stays open."""

    async def make() -> None:
        migrate: Callable[[str], Any] = import_module("kernel.migrations").migrate
        await _execute(postgres_dsn, f"CREATE DATABASE {TEMPLATE}")
        await migrate(on_database(postgres_dsn, TEMPLATE))

    asyncio.run(make())
    return TEMPLATE


@pytest.fixture
async def database(postgres_dsn: str, migrated_template: str) -> AsyncIterator[str]:
    """The DSN (superuser) of a fresh, migrated, empty database, dropped after the test."""
    name = f"test_{secrets.token_hex(6)}"
    await _execute(postgres_dsn, f"CREATE DATABASE {name} TEMPLATE {migrated_template}")
    yield on_database(postgres_dsn, name)
    await _execute(postgres_dsn, f"DROP DATABASE {name} WITH (FORCE)")
