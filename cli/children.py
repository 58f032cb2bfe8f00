"""The child processes of the supervisor behind one small interface."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, Literal, Protocol, TypeVar

from kernel.embedded import EmbeddedNats, EmbeddedPostgres
from kernel.spawn import guarded

_Server = TypeVar("_Server", EmbeddedPostgres, EmbeddedNats)

GRACE_SECONDS = 12.0
"""A service has this long to end by itself; being killed does it no harm, only its callers."""


class Child(Protocol):
    """A process that the supervisor keeps running."""

    name: str
    log_file: Path

    @property
    def kind(self) -> Literal["postgres", "nats", "service"]: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def port(self) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def command(self) -> list[str]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class _EmbeddedChild(Generic[_Server]):
    """A server that the package brings along."""

    def __init__(self, server: _Server, log_file: Path) -> None:
        self._server: _Server = server
        self.log_file = log_file

    @property
    def pid(self) -> int | None:
        return self._server.pid

    @property
    def port(self) -> int:
        return self._server.server.port if self._server.server else 0

    @property
    def command(self) -> list[str]:
        return self._server.command()

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


class PostgresChild(_EmbeddedChild[EmbeddedPostgres]):
    """The embedded Postgres."""

    name: str = "postgres"
    kind: Final = "postgres"

    def __init__(self, folder: Path, password: str, log_file: Path) -> None:
        super().__init__(EmbeddedPostgres(folder, password=password, log_file=log_file), log_file)

    @property
    def address(self) -> str:
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def dsn(self) -> str:
        """The owner's DSN, with its password."""
        return self._server.dsn


class NatsChild(_EmbeddedChild[EmbeddedNats]):
    """The embedded nats-server."""

    name: str = "nats"
    kind: Final = "nats"

    def __init__(self, folder: Path, config: str, log_file: Path) -> None:
        super().__init__(EmbeddedNats(folder, config=config, log_file=log_file), log_file)

    @property
    def address(self) -> str:
        return self._server.url


class ServiceChild:
    """One process of services, the leader of its own process group."""

    kind: Final = "service"

    def __init__(
        self, name: str, command: list[str], env: dict[str, str], port: int, log_file: Path
    ) -> None:
        self.name, self.port, self.log_file = name, port, log_file
        self.command, self._env = command, env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None once it ended; then the rest of its group is ended too."""
        process = self._process
        if process is None:
            return None
        if _ended(process.pid):
            self._bury(process)
            return None
        return process.pid

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns at once; `healthy` tells when it is up."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                guarded(self.command, die_with=signal.SIGKILL),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env,
                cwd=self.log_file.parent, start_new_session=True, umask=0o077,
            )  # fmt: skip

    def stop(self) -> None:
        """SIGTERM, then SIGKILL to whatever is left of its group."""
        process = self._process
        if process is None:
            return
        # Not Popen.terminate: it would give a dead child's id back before its group is ended.
        os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while not _ended(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._bury(process)

    def _bury(self, process: subprocess.Popen[bytes]) -> None:
        """End the group before the leader's id is given back, so that no stranger is hit."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None


def _ended(pid: int) -> bool:
    """Whether our child is dead; it stays a zombie, so its id is not reused yet."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def answers(kind: str, port: int) -> bool:
    """Is that process ready: `/health` says 200 (a service), the port is open (a server)."""
    probes: dict[str, Callable[[int], bool]] = {"service": _health}
    try:
        return probes.get(kind, _open)(port)
    except (OSError, http.client.HTTPException):
        return False


def _health(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def _open(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return True


def tail(file: Path, lines: int = 12) -> str:
    """The end of a log."""
    with suppress(OSError), file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - 8192))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    return ""
