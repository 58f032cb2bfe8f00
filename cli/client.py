"""The front door as the CLI sees it."""

import os
import sys
from pathlib import Path
from typing import Any

import httpx

from cli.datadir import DataDir
from cli.output import CliError
from cli.plan import with_user
from cli.runstate import running
from kernel.early_answer import EarlyAnswerTransport

TIMEOUT = httpx.Timeout(120, connect=5)


def _door(data: DataDir) -> dict[str, Any]:
    """Address and key: `KB_URL` (somewhere else) or the stack of this folder.

    Raises:
        CliError: nothing runs, or there is no key.
    """
    settings = data.settings(os.environ)
    url = settings.get("KB_URL")
    if not url:
        state = running(data)
        if state is None or not state.url:
            raise CliError("citelog is not running", f"start it: kb up --data {data.root}")
        url = state.url
    if "KB_API_KEY" not in settings:
        raise CliError("no API key", f"neither in {data.env_file} nor in KB_API_KEY")
    return {
        "base_url": url,
        "headers": {"Authorization": f"Bearer {settings['KB_API_KEY']}"},
        "timeout": TIMEOUT,
        # A proxy of the environment has no business between us and our own machine.
        "trust_env": "KB_URL" in settings,
    }


def bus(data: DataDir, user: str) -> tuple[str, bool]:
    """Address of the bus, and whether it is that of this folder: then as this user of it.

    Raises:
        CliError: there is none.
    """
    settings = data.settings(os.environ)
    if external := settings.get("KB_NATS_URL"):
        return external, False
    state = running(data)
    found = next((p.address for p in state.processes if p.kind == "nats"), None) if state else None
    password = settings.get(f"KB_BUS_PASSWORD_{user.upper()}")
    if found is None or password is None:
        raise CliError("there is no bus", f"start it: kb up --data {data.root}; or set KB_NATS_URL")
    return with_user(found, user, password), True


def client(data: DataDir) -> httpx.Client:
    """A client of the front door."""
    return httpx.Client(**_door(data))


def async_client(data: DataDir) -> httpx.AsyncClient:
    """The same for coroutines; here it notices a refusal in the middle of an upload."""
    door = _door(data)
    transport = None if door["trust_env"] else EarlyAnswerTransport()
    return httpx.AsyncClient(**door, transport=transport)


def call(data: DataDir, method: str, path: str, **options: Any) -> httpx.Response:
    """One request; the reply is a success.

    Raises:
        CliError: a problem reply, or no connection.
    """
    with client(data) as http:
        try:
            reply = http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise unreachable(error) from error
    return checked(reply)


def download(data: DataDir, path: str, to: Path) -> int:
    """The body of a reply as a file, whole or not at all (`-`: standard output); its size.

    Raises:
        CliError: a problem reply, no connection, or it broke off.
    """
    unfinished = to.with_name(f".{to.name}.part")
    try:
        with client(data) as http, http.stream("GET", path) as reply:
            if not reply.is_success:
                reply.read()
                checked(reply)
            if str(to) == "-":
                return sum(sys.stdout.buffer.write(part) for part in reply.iter_bytes())
            with unfinished.open("wb") as file:
                size = sum(file.write(part) for part in reply.iter_bytes())
    except httpx.HTTPError as error:
        unfinished.unlink(missing_ok=True)
        raise unreachable(error) from error
    unfinished.replace(to)
    return size


def checked(reply: httpx.Response) -> httpx.Response:
    """The reply if it is a success.

    Raises:
        CliError: what its problem+json says.
    """
    if reply.is_success:
        return reply
    try:
        body = reply.json()
        title, detail, type_ = body["title"], body.get("detail", ""), body.get("type", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CliError(f"HTTP {reply.status_code}", reply.text[:200]) from None
    raise CliError(str(title), str(detail), str(type_), body=reply.content)


def unreachable(error: httpx.HTTPError) -> CliError:
    """The connection failed."""
    detail = str(error) or type(error).__name__
    return CliError("the front door does not answer", detail, "urn:kb:problem:unreachable")
