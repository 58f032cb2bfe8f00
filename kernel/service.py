"""One process: builds the services that it was asked for, runs them, stops them in order."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI

from contracts.events import Event, Fact
from contracts.flow import durable
from kernel import telemetry
from kernel.blobs import Blobs
from kernel.consumer import TakeBack, consumers_of, nothing_to_take_back, subscribe
from kernel.db import UNAVAILABLE, pool
from kernel.erasure import Traces
from kernel.log import Log
from kernel.provision import consumers
from kernel.settings import Settings
from kernel.watchdog import Watchdog

log = structlog.get_logger()
NOT_UP_YET: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError)
DATABASE_ERRORS: tuple[type[BaseException], ...] = (*UNAVAILABLE, asyncpg.PostgresError)


@dataclass(frozen=True)
class Service:
    """What a service gives the process that runs it."""

    name: str
    app: FastAPI | None = None
    handlers: ModuleType | None = None
    deps: Mapping[str, Any] = field(default_factory=dict)
    background: tuple[Callable[[], Awaitable[None]], ...] = ()
    on_stop: tuple[Callable[[], Awaitable[None]], ...] = ()
    concurrency: int | None = None
    take_back: TakeBack = nothing_to_take_back
    """What a handler wrote besides blobs and events, for a job that is over."""


class Process:
    """What all services of this process have in common."""

    def __init__(self, settings: Settings, names: tuple[str, ...]) -> None:
        self.settings = settings
        self.names = names
        self.blobs = Blobs(settings.blob_url)
        self.stack = AsyncExitStack()
        self.shared: dict[str, Any] = {}


class Env:
    """What the process gives a service: its own database role, and what is shared.

    `share` makes a thing once for all services of the process.
    """

    def __init__(self, process: Process, db: "asyncpg.Pool[Any]") -> None:
        self.settings = process.settings
        self.names = process.names
        self.blobs = process.blobs
        self.stack = process.stack
        self.pool = db
        self.log = Log(db)
        self._shared = process.shared

    async def share(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """The shared thing `name`, made by the first service that asks for it."""
        if name not in self._shared:
            self._shared[name] = asyncio.ensure_future(make())
        return await self._shared[name]

    async def health(self) -> dict[str, Any]:
        """Does this process reach Postgres?"""
        try:
            async with asyncio.timeout(5):
                head = await self.log.head()
        except DATABASE_ERRORS as error:
            return {"status": "down", "services": self.names, "postgres": type(error).__name__}
        return {"status": "ok", "services": self.names, "position": head}


async def run_services(names: list[str], settings: Settings) -> None:
    """Run services in this process until SIGTERM or SIGINT, or until one of them fails.

    Raises:
        BaseExceptionGroup: a background task or the web server failed; the supervisor restarts.
    """
    telemetry.setup(
        "+".join(names), level=settings.log_level, json_lines=settings.log_format == "json"
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    process = Process(settings, tuple(names))
    async with process.stack:
        envs = [await _env(process, name) for name in names]
        services = [await _build(name, env) for name, env in zip(names, envs, strict=True)]
        for service in services:
            for close in service.on_stop:
                process.stack.push_async_callback(close)
        await _run(services, envs, stop)
    log.info("process.stopped")


async def _env(process: Process, name: str) -> Env:
    db = await _connect(process.settings, name)
    env = Env(process, db)
    process.stack.push_async_callback(_close_pool, db)
    process.stack.push_async_callback(env.log.close)
    return env


async def _connect(settings: Settings, name: str) -> "asyncpg.Pool[Any]":
    """Wait for Postgres: at a cold start everything comes up at once."""
    deadline = asyncio.get_running_loop().time() + settings.start_timeout
    while True:
        try:
            return await pool(settings.postgres_for(name), service=f"kb-{name}", size=8)
        except NOT_UP_YET:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.3)


async def _close_pool(db: "asyncpg.Pool[Any]") -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await db.close()
        return
    db.terminate()


async def _build(name: str, env: Env) -> Service:
    module = import_module("kernel.relay_service" if name == "relay" else f"services.{name}.app")
    service = await module.build(env)
    if not isinstance(service, Service):
        raise TypeError(f"{name} built no Service")
    return service


async def _run(services: list[Service], envs: list[Env], stop: asyncio.Event) -> None:
    broker = await _broker(services, envs, stop)
    if broker is not None:
        await _start(broker, envs[0].settings.start_timeout)
    server = _server(services, envs[0])
    tasks = [asyncio.ensure_future(t()) for s in services for t in s.background]
    tasks += [asyncio.ensure_future(w.run()) for w in _watchdogs(services, envs[0].settings)]
    tasks.append(asyncio.ensure_future(server.serve()))
    stopped = asyncio.ensure_future(stop.wait())
    log.info("process.started", port=server.config.port)
    try:
        await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        server.should_exit = True
        if broker is not None:
            await broker.stop()
        await asyncio.wait([tasks[-1]], timeout=6)
        for task in (*tasks, stopped):
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [r for r in results if isinstance(r, Exception)]
    if failures:
        raise ExceptionGroup("a task of this process failed", failures)


def _watchdogs(services: list[Service], settings: Settings) -> list[Watchdog]:
    names = [
        durable(s.name, event, lane)
        for s in services
        if s.handlers
        for service, event, lane in consumers()
        if service == s.name
    ]
    return [Watchdog(settings.nats_url, names, settings.nats_api)] if names else []


async def _start(broker: Any, patience: float) -> None:
    """Connect and bind; at a cold start NATS and its consumers may not be there yet."""
    import nats.errors

    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            await broker.start()
        except (nats.errors.Error, OSError) as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            log.info("bus.waiting", error=f"{type(error).__name__}: {error}"[:200])
            await broker.stop()
            await asyncio.sleep(0.3)
        else:
            return


async def _broker(services: list[Service], envs: list[Env], stop: asyncio.Event) -> Any:
    workers = [(s, e, s.handlers) for s, e in zip(services, envs, strict=True) if s.handlers]
    settings = envs[0].settings
    if not workers:
        return None
    from faststream.nats import NatsBroker

    async def closed() -> None:
        # nats-py gave up: FastStream would spin for ever. A restart is the cure.
        if not stop.is_set():
            log.error("bus.closed")
            stop.set()

    broker = NatsBroker(
        settings.nats_url,
        allow_reconnect=True,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        graceful_timeout=10,
        closed_cb=closed,
        js_options={"prefix": settings.nats_api},
        logger=None,
    )
    for service, env, handlers in workers:
        take_back = _both(service.take_back, Traces(env.log, env.blobs).take_back)
        for consumer in consumers_of(service.name, handlers, env.log, service.deps, take_back):
            subscribe(broker, consumer, concurrency=service.concurrency or settings.concurrency)
    return broker


def _both(own: TakeBack, common: TakeBack) -> TakeBack:
    async def take_back(event: Event, emitted: Sequence[Fact]) -> None:
        await own(event, emitted)
        await common(event, emitted)

    return take_back


def _server(services: list[Service], env: Env) -> Any:
    import uvicorn

    from kernel.web import CloseEarly, create_api

    apps = [s.app for s in services if s.app is not None]
    if apps:
        app = apps[0]
        for other in apps[1:]:
            known = {getattr(r, "path", None) for r in app.router.routes}
            app.router.routes.extend(
                r for r in other.router.routes if getattr(r, "path", None) not in known
            )
    else:
        app = create_api(
            services[0].name,
            api_key=env.settings.api_key.get_secret_value(),
            health=env.health,
        )
    config = uvicorn.Config(
        CloseEarly(app),
        host=env.settings.host,
        port=env.settings.port,
        log_config=None,
        access_log=False,
        proxy_headers=bool(env.settings.forwarded_allow_ips),
        forwarded_allow_ips=env.settings.forwarded_allow_ips or None,
        lifespan="on",
        timeout_graceful_shutdown=5,
    )

    class Server(uvicorn.Server):
        """Leaves signals to this process: uvicorn would exit past our own order of stopping."""

        def capture_signals(self) -> Any:
            return nullcontext()

    return Server(config)
