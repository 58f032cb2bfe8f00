"""The front door on a real port, before fake services and a real database."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from argon2 import PasswordHasher

from services.ui.app import create_app
from services.ui.identity import Accounts
from services.ui.settings import UiSettings
from tests.conftest import on_database
from tests.unit.ui.fake import KEY, Fake, served

PASSWORD = "the first password"
CHOSEN = "a password of my own"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def settings(base: str, **changes: Any) -> UiSettings:
    """Settings with every service at one address."""
    urls = {f"{name}_url": base for name in ("ingest", "search", "scanner", "indexer")}
    return UiSettings.model_validate({"api_key": KEY, **urls, **changes})


@pytest.fixture(scope="session")
def ui_database(postgres_dsn: str, migrated_template: str) -> str:
    """One database with accounts for all tests of this folder: making one for each takes longer
    than the tests. It goes with its server."""

    async def make() -> None:
        server = await asyncpg.connect(postgres_dsn)
        await server.execute(f"CREATE DATABASE ui TEMPLATE {migrated_template}")
        await server.close()

    asyncio.run(make())
    return on_database(postgres_dsn, "ui")


@pytest.fixture
async def pool(ui_database: str) -> AsyncIterator["asyncpg.Pool[Any]"]:
    """The database, with no account in it."""
    async with asyncpg.create_pool(ui_database, min_size=1, max_size=4) as made:
        await made.execute("DELETE FROM auth.account; DELETE FROM auth.attempt")
        yield made


@pytest.fixture
def accounts(pool: "asyncpg.Pool[Any]") -> Accounts:
    """Accounts whose hashes are quick."""
    return Accounts(pool, hasher=CHEAP)


@pytest.fixture
def fake() -> Fake:
    """What the internal services say."""
    return Fake()


@pytest.fixture
async def internal(fake: Fake) -> AsyncIterator[str]:
    """Base URL of the fake services."""
    async with served(fake.app()) as url:
        yield url


@pytest.fixture
async def front(internal: str) -> AsyncIterator[str]:
    """Base URL of a front door without a database: for programs."""
    app = create_app(settings(internal), None)
    async with served(app) as url:
        yield url
    await app.state.upstream.aclose()


@pytest.fixture
async def site(internal: str, accounts: Accounts) -> AsyncIterator[str]:
    """Base URL of a front door with the account `admin`."""
    await accounts.bootstrap(PASSWORD)
    app = create_app(settings(internal), None, accounts=accounts)
    async with served(app) as url:
        yield url
    await app.state.upstream.aclose()


@pytest.fixture
async def program(front: str) -> AsyncIterator[httpx.AsyncClient]:
    """A program with the key."""
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=front, headers=headers, timeout=20) as client:
        yield client


@pytest.fixture
async def browser(site: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser in which nobody is signed in."""
    async with httpx.AsyncClient(base_url=site, timeout=20) as client:
        yield client


@pytest.fixture
async def person(browser: httpx.AsyncClient, accounts: Accounts) -> httpx.AsyncClient:
    """A browser in which `admin` is signed in and has a password of its own."""
    first = await accounts.person(await accounts.sign_in("admin", PASSWORD, "", None))
    assert first
    token = await accounts.change_password(first, PASSWORD, CHOSEN)
    browser.cookies.set("kb_session", token, domain="127.0.0.1")
    return browser


async def sign_in(
    browser: httpx.AsyncClient, password: str, name: str = "admin", **fields: str
) -> httpx.Response:
    """Fill in the form and send it."""
    form = (await browser.get("/ui/sign-in")).text
    data = {"name": name, "password": password, "token": value_of(form, "token"), **fields}
    return await browser.post("/ui/sign-in", data=data)


def value_of(html: str, name: str) -> str:
    """Value of a hidden field."""
    return html.split(f'name="{name}" value="')[1].split('"', maxsplit=1)[0]


async def csrf(browser: httpx.AsyncClient, path: str = "/") -> str:
    """The token of the session, as a page has it."""
    return value_of((await browser.get(path)).text, "csrf")
