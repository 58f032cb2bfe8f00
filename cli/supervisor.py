"""Behind `kb up`: starts everything in order, restarts what dies, stops everything in order."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import psutil

from cli.children import Child, NatsChild, PostgresChild, ServiceChild, answers, tail
from cli.datadir import BUS_USERS, OUTSIDE_BUS_USERS, ROLES, DataDir, write_private
from cli.plan import Config, Spec, Stores, groups, plan, with_user
from cli.runstate import Phase, State, marked, record, remember_port, remembered_port
from kernel.embedded import free_ports
from kernel.errors import KbError
from kernel.spawn import guarded

START_SECONDS = 300.0
_TICK_SECONDS = 0.1
_STARTS_BEFORE_GIVING_UP = 5
_STABLE_SECONDS = 60.0


class StartError(KbError):
    """The stack did not come up; one line and the end of a log."""


class _StopAsked(Exception):
    """A signal came while starting."""


@dataclass(frozen=True)
class Stack:
    """What the supervisor asks of the rest of the project; tests put a small fake here."""

    module: str
    command: Callable[[Spec], list[str]]
    migrate: Callable[[str, Mapping[str, str]], None]
    nats_config: Callable[[Mapping[str, str]], str]
    provision: Callable[[str], None]
    build_models: Callable[[Config], None]


@dataclass
class Kept:
    """A child and its history."""

    child: Child
    pid: int | None = None
    restarts: int = 0
    failures: int = 0
    started_at: float = 0.0
    next_start: float = 0.0
    record: Any = None


@dataclass
class Ready:
    """What a person is told when everything is up."""

    url: str
    admin_password: str | None = None


@dataclass
class Supervisor:
    """One run. `say` gets progress lines (never a secret)."""

    data: DataDir
    stack: Stack
    say: Callable[[str], None]
    port: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._longest_pause = float(self.environ.get("KB_RESTART_PAUSE_MAX") or 30)
        self._run_id = secrets.token_hex(16)
        self._kept: list[Kept] = []
        self._stop = False
        self._phase: Phase = "starting"
        self._url = ""
        self._config: dict[str, str] = {}

    def run(self, on_ready: Callable[[Ready], None]) -> None:
        """Start, call `on_ready` once, keep running until a signal, stop. Under the lock only.

        Raises:
            StartError, ServerError: it did not come up; everything is stopped again.
        """
        previous = {n: signal.signal(n, self._on_signal) for n in _SIGNALS}
        try:
            self._start(on_ready)
            self._watch()
        except _StopAsked:
            pass
        finally:
            self._stop_all()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stop = True

    def _start(self, on_ready: Callable[[Ready], None]) -> None:
        self._write_state()
        self.data.ensure_secrets(self.environ)
        self._config = self.data.settings(self.environ)
        password = self._bootstrap_password()
        stores = self._start_stores()
        self.say("models …")
        try:
            self.stack.build_models(self._config)
        except StartError:
            self._check_stop()  # Ctrl-C reaches the builder too; that is no failure
            raise
        self._check_stop()
        specs = self._plan(stores, password)
        self.say(f"services: {', '.join(s.name for s in specs)} …")
        for spec in specs:
            self._keep(self._service(spec))
        self._wait_healthy()
        self._phase = "ready"
        self._write_state()
        on_ready(Ready(self._url, password))
        self._password_was_shown()

    def _start_stores(self) -> Stores:
        """Postgres and NATS, ours or those that the settings point at, made ready for use."""
        owner = self._config.get("KB_POSTGRES_URL") or self._start_postgres()
        self.say("migrations …")
        passwords = {f"kb_{r}": self._config[f"KB_DB_PASSWORD_{r.upper()}"] for r in ROLES}
        self.stack.migrate(owner, passwords)
        self._check_stop()
        external = self._config.get("KB_NATS_URL")
        bus = external or self._start_nats()
        admin = bus if external else with_user(bus, "admin", self._config["KB_BUS_PASSWORD_ADMIN"])
        self.stack.provision(admin)
        self._check_stop()
        blobs = self._config.get("KB_BLOBS") or str(self.data.blobs)
        return Stores(str(self.data.root), owner, bus, blobs, external_nats=bool(external))

    def _start_postgres(self) -> str:
        self.say("Postgres …")
        password = self._config["KB_OWNER_PASSWORD"]
        child = PostgresChild(self.data.root / "postgres", password, self.data.log_file("postgres"))
        self._keep(child)
        return child.dsn

    def _start_nats(self) -> str:
        self.say("nats-server …")
        names = (*BUS_USERS, *OUTSIDE_BUS_USERS)
        users = {u: self._config[f"KB_BUS_PASSWORD_{u.upper()}"] for u in names}
        config = self.stack.nats_config(users)
        child = NatsChild(self.data.root / "nats", config, self.data.log_file("nats"))
        self._keep(child)
        return child.address

    def _plan(self, stores: Stores, password: str | None) -> list[Spec]:
        names = ["+".join(g) for g in groups(self._config) if g != ("ui",)]
        free = free_ports(len(names) + 1)
        front_door = self._front_door_port(free[-1])
        others = [port for port in free if port != front_door]
        ports = {"ui": front_door} | dict(zip(names, others, strict=False))
        self._url = f"http://127.0.0.1:{ports['ui']}"
        config = {"KB_DROPZONE": str(self.data.dropzone)} | self._config
        if password:
            config["KB_BOOTSTRAP_PASSWORD"] = password
        return plan(config, stores, ports, self._run_id)

    def _front_door_port(self, free: int) -> int:
        remembered = remembered_port(self.data)
        wanted = self.port or remembered
        if wanted and _can_bind(wanted):
            port = wanted
        elif self.port:
            raise StartError(f"port {self.port} is in use")
        else:
            port = free
        remember_port(self.data, port)
        return port

    def _service(self, spec: Spec) -> ServiceChild:
        return ServiceChild(
            spec.name, self.stack.command(spec), dict(spec.env), spec.port,
            self.data.log_file(spec.name),
        )  # fmt: skip

    # -- the first password -------------------------------------------------

    def _bootstrap_password(self) -> str | None:
        """Kept in a private file until it was shown: a start that dies half-way loses nothing."""
        if "KB_ADMIN_CREATED" in self._config:
            return None
        file = self.data.run / "bootstrap"
        if not file.exists():
            write_private(file, secrets.token_urlsafe(18))
        return file.read_text()

    def _password_was_shown(self) -> None:
        if "KB_ADMIN_CREATED" not in self._config:
            self.data.remember({"KB_ADMIN_CREATED": "1"})
        (self.data.run / "bootstrap").unlink(missing_ok=True)

    # -- keeping things alive -----------------------------------------------

    def _keep(self, child: Child) -> None:
        kept = Kept(child)
        self._kept.append(kept)
        self._launch(kept)

    def _launch(self, kept: Kept) -> None:
        kept.started_at = time.monotonic()
        kept.child.start()
        kept.pid = kept.child.pid
        if kept.pid is not None:
            child = kept.child
            kept.record = record(
                child.name, child.kind, kept.pid, command=child.command, port=child.port,
                address=child.address,
            )  # fmt: skip
            kept.record.restarts = kept.restarts
        self._write_state()

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        waiting = list(self._kept)
        while waiting:
            self._check_stop()
            self._revive()
            for kept in waiting:
                if kept.failures >= _STARTS_BEFORE_GIVING_UP or time.monotonic() > deadline:
                    raise StartError(_complaint(kept.child))
            waiting = [k for k in waiting if not (k.pid and answers(k.child.kind, k.child.port))]
            time.sleep(_TICK_SECONDS)

    def _watch(self) -> None:
        while not self._stop:
            self._revive()
            time.sleep(_TICK_SECONDS)

    def _revive(self) -> None:
        """Start again what died, after a pause that grows with every quick death."""
        now = time.monotonic()
        for kept in self._kept:
            if kept.pid is not None and kept.child.pid is None:
                kept.pid = None
                lived = now - kept.started_at
                kept.failures = 1 if lived > _STABLE_SECONDS else kept.failures + 1
                wait = pause(kept.failures, self._longest_pause)
                kept.next_start = now + wait
                self.say(f"{kept.child.name} ended; again in {wait:g} s")
            if kept.pid is None and now >= kept.next_start and not self._stop:
                self._again(kept, now)

    def _again(self, kept: Kept, now: float) -> None:
        kept.restarts += 1
        try:
            self._launch(kept)
        except (KbError, OSError) as error:
            kept.failures += 1
            kept.next_start = now + pause(kept.failures, self._longest_pause)
            self.say(f"{kept.child.name}: {error}")

    # -- stopping -----------------------------------------------------------

    def _stop_all(self) -> None:
        self._phase = "stopping"
        self._write_state()
        with ExitStack() as last_first:
            # Whatever one of them raises, the others are stopped too.
            for kept in self._kept:
                last_first.callback(self._stop_one, kept.child)
        for process in marked(self._run_id):
            process.kill()
        (self.data.run / "state.json").unlink(missing_ok=True)

    def _stop_one(self, child: Child) -> None:
        self.say(f"stopping {child.name} …")
        child.stop()

    def _check_stop(self) -> None:
        if self._stop:
            raise _StopAsked("a signal came while starting")

    def _write_state(self) -> None:
        command = psutil.Process().cmdline()
        me = record("supervisor", "supervisor", os.getpid(), command=command, port=0, address="")
        state = State(
            run_id=self._run_id, phase=self._phase, url=self._url, supervisor=me,
            processes=[k.record for k in self._kept if k.record],
        )  # fmt: skip
        state.write(self.data)


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def pause(failures: int, longest: float) -> float:
    """Seconds before start number `failures` + 1 in a row: 0.5, 1, 2, … `longest`."""
    return float(min(0.5 * 2 ** min(failures - 1, 16), longest))


def _complaint(child: Child) -> str:
    return f"{child.name} does not come up; the end of {child.log_file}:\n{tail(child.log_file)}"


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# -- the real stack ---------------------------------------------------------------------------


def _migrate(dsn: str, passwords: Mapping[str, str]) -> None:
    import asyncio

    from kernel.migrations import migrate

    asyncio.run(migrate(dsn, passwords))


def _nats_config(users: Mapping[str, str]) -> str:
    from kernel.provision import nats_config

    return nats_config(users)


def _provision(url: str) -> None:
    import asyncio

    from kernel.provision import provision

    asyncio.run(provision(url))


def _build_models(config: Config) -> None:
    """In a process of its own: the supervisor stays small."""
    if config.get("KB_EMBEDDER", "bundled") != "bundled":
        return
    program = (
        "from kernel.embedder import EmbedderSettings, ensure_bundled; "
        "ensure_bundled(EmbedderSettings().model_cache)"
    )
    command = guarded([sys.executable, "-P", "-c", program])
    done = subprocess.run(command, env=dict(config), check=False, capture_output=True)
    if done.returncode != 0:
        raise StartError(f"the bundled embedder: {done.stderr.decode(errors='replace')[-2000:]}")


def real_stack() -> Stack:
    """The services of this project."""
    return Stack(
        module="cli.main", command=Spec.command, migrate=_migrate, nats_config=_nats_config,
        provision=_provision, build_models=_build_models,
    )  # fmt: skip
