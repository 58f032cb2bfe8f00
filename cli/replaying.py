"""How `kb replay` works: events of the log once more, to a file, a subject, a projection."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cli.client import async_client, call, checked, unreachable
from cli.datadir import DataDir
from cli.output import CliError, as_json, clean, note, out
from cli.targets import NOWHERE, File, Output, Reached, Subject, Target, check_subject
from contracts.replay import EventSummary

JSON_LINES = "application/x-ndjson"
PATIENCE_SECONDS = 120.0
"""For so long a replay tries to reach the front door again when it went away."""
AWAY = (502, 503)
"""What the front door says while a service behind it starts again."""
READ = httpx.Timeout(120, connect=5)
PROJECTIONS = ("read", "index")


@dataclass(frozen=True)
class Asked:
    """Which events: the query of `GET /events`, without a position to begin after."""

    which: dict[str, Any]
    after: int
    until: int | None
    current: bool

    def query(self, after: int = 0) -> dict[str, Any]:
        """Parameters of the request."""
        ends = {} if self.until is None else {"until": self.until}
        return self.which | ends | {"after": max(after, self.after)}


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    from_: str | None
    until: str | None
    which: dict[str, Any]
    current: bool
    to: Path | None
    subject: str | None
    jetstream: bool
    projection: str | None
    dry_run: bool
    resume: bool
    json_: bool


def replay(data: DataDir, given: Options) -> None:
    """Do what the options say.

    Raises:
        CliError: they contradict each other, or something is not there, or it broke off.
    """
    if sum(x is not None for x in (given.to, given.subject, given.projection)) > 1:
        raise CliError("one of --out, --subject, --projection")
    asked = _asked(given)
    if given.projection is not None:
        _check_projection(given.projection, asked, resume=given.resume)
    if given.subject is not None:
        check_subject(given.subject)
    elif given.jetstream:
        raise CliError("--jetstream is about --subject")
    found = _summary(data, asked)
    _check_range(asked, found)
    if given.dry_run:
        as_json(found.model_dump(mode="json")) if given.json_ else _counts(found)
    elif given.projection is not None:
        _project(data, given.projection, asked, found, json_=given.json_)
    else:
        target = _target(data, given, asked)
        work = _Replay(data, asked, found, target, quiet=given.json_)
        asyncio.run(work.run(resume=given.resume))


# -- what is asked for -------------------------------------------------------------------------


def _asked(given: Options) -> Asked:
    which, after, last = dict(given.which), 0, None
    if given.from_ is not None:
        if (position := _position("--from", given.from_)) is None:
            which["recorded_from"] = given.from_
        else:
            after = position - 1
    if given.until is not None:
        last = _position("--until", given.until)
        if last is None:
            which["recorded_before"] = given.until
    return Asked(which, after, last, given.current)


def _position(option: str, value: str) -> int | None:
    """A position, or None for a day or an instant.

    Raises:
        CliError: it is neither.
    """
    from pydantic import TypeAdapter, ValidationError

    from contracts.http import ValidFrom

    if value.isascii() and value.isdecimal():
        if not 1 <= int(value[:20]) < 2**63:
            raise CliError(f"{option} is no position", "they count from 1")
        return int(value)
    try:
        TypeAdapter(ValidFrom).validate_python(value)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise CliError(
            f"{option} is no position, no day and no instant with zone", f"{value}: {reason}"
        ) from None
    return None


def _check_projection(name: str, asked: Asked, *, resume: bool) -> None:
    if name not in PROJECTIONS:
        raise CliError("no such projection", f"{name}; there are {', '.join(PROJECTIONS)}")
    allowed = {"project"} if name == "index" else set()
    partial = asked.which.keys() - allowed or asked.after or asked.until is not None
    if partial or asked.current or resume:
        raise CliError(
            "a projection is made from the whole log",
            "what it holds follows from all events in order: some of them would make another state",
        )


def _check_range(asked: Asked, found: EventSummary) -> None:
    if asked.until is not None and asked.until <= asked.after:
        raise CliError("the range is empty", "--until comes before --from")
    beyond = [p for p in (asked.after + 1, asked.until or 0) if p > max(found.head, 1)]
    if beyond:
        raise CliError("the range goes beyond the log", f"{beyond[0]}; it ends at {found.head}")


def _summary(data: DataDir, asked: Asked, *, until: int | None = None) -> EventSummary:
    query = asked.query() | ({} if until is None else {"until": until})
    reply = call(data, "GET", "/events/summary", params=query)
    return EventSummary.model_validate_json(reply.content)


def _target(data: DataDir, given: Options, asked: Asked) -> Target:
    if given.subject is not None:
        about = [asked.which, asked.after, asked.until, asked.current]
        return Subject(data, given.subject, about, resume=given.resume, stored=given.jetstream)
    if given.to is not None and str(given.to) != "-":
        return File(given.to, resume=given.resume)
    if given.resume:
        raise CliError("--resume is about --out or --subject", "nobody knows what was printed")
    return Output()


# -- doing it ----------------------------------------------------------------------------------


class _Replay:
    """One replay: reads whole lines from the front door and hands them on."""

    def __init__(
        self, data: DataDir, asked: Asked, found: EventSummary, target: Target, *, quiet: bool
    ) -> None:
        self._data, self._asked, self._found, self._target = data, asked, found, target
        self._json = quiet
        self._reached: Reached = NOWHERE
        self._events = 0
        self._last = 0

    async def run(self, *, resume: bool) -> None:
        """All of it, and a report.

        Raises:
            CliError: what the target holds is not the begin of this replay, or it cannot go on.
        """
        began = time.monotonic()
        try:
            self._reached = await self._target.open()
            if resume and self._reached.events:
                await self._check_begin()
            await self._target.go_on()
            self._last = self._reached.position
            await self._all()
        finally:
            await self._target.close()
        self._report(time.monotonic() - began)

    async def _check_begin(self) -> None:
        """What is there must be what the log says up to that place, neither more nor less."""
        was = self._reached
        until = min(was.position, self._found.until)
        so_far = _summary(self._data, self._asked, until=until)
        query = self._asked.query(was.position - 1) | {"until": until}
        reply = call(self._data, "GET", "/events", params=query, headers={"Accept": JSON_LINES})
        last = json.loads(reply.content) if reply.content else {"id": None}
        if so_far.events != was.events or last["id"] != was.event_id:
            raise CliError(
                f"{self._target.label} holds something else",
                f"{was.events} events up to position {was.position}; with this range and these "
                f"filters there are {so_far.events}. Resume with the same ones",
            )

    async def _all(self) -> None:
        with self._bar() as bar:
            seen = time.monotonic()
            while self._last < (self._found.last or 0):
                before = self._last
                try:
                    async for lines, last in self._lines():
                        await self._target.take(lines, last)
                        self._last = last
                        self._events += lines.count(b"\n")
                        seen = time.monotonic()
                        bar(self._events)
                except httpx.TransportError as error:
                    if time.monotonic() - seen > PATIENCE_SECONDS:
                        raise unreachable(error) from error
                    await asyncio.sleep(0.5)
                else:
                    if self._last == before:
                        raise CliError("the log changed", f"nothing comes after {self._last}")
        expected = self._found.events - self._reached.events
        if self._events != expected:
            raise CliError("events are missing", f"{self._events} came, and not {expected}")

    async def _lines(self) -> AsyncIterator[tuple[bytes, int]]:
        """Whole lines as they come, and the position of the last one."""
        query = self._asked.query(self._last) | {"until": self._found.until}
        if self._asked.current:
            query["current"] = "true"
        async with async_client(self._data) as http:
            http.timeout = READ
            async with http.stream(
                "GET", "/events", params=query, headers={"Accept": JSON_LINES}
            ) as reply:
                if reply.status_code in AWAY:
                    raise httpx.RemoteProtocolError(f"HTTP {reply.status_code}")
                if not reply.is_success:
                    await reply.aread()
                    checked(reply)
                rest = b""
                async for part in reply.aiter_bytes():
                    lines, newline, rest = (rest + part).rpartition(b"\n")
                    if newline:
                        yield lines + newline, json.loads(lines.rpartition(b"\n")[2])["position"]

    def _bar(self) -> Any:
        """A bar on a terminal that shows nothing else."""
        shares = isinstance(self._target, Output) and sys.stdout.isatty()
        if self._json or shares or not sys.stderr.isatty():
            return nullcontext(lambda _: None)
        from cli.progress import EventBar

        return EventBar(self._found.events, self._reached.events)

    def _report(self, seconds: float) -> None:
        told = {
            "target": self._target.label, "events": self._events, "first": self._found.first,
            "last": self._last or None, "head": self._found.head,
            "resumed_after": self._reached.position or None, "seconds": round(seconds, 3),
        }  # fmt: skip
        if isinstance(self._target, Output):
            return
        if self._json:
            as_json(told)
            return
        rate = f", {self._events / seconds:,.0f}/s" if self._events else ""
        since = f" after {self._reached.position}" if self._reached.events else ""
        until = f" up to position {self._last}" if self._last else ""
        out(f"{self._events} events{since}{until} to {clean(self._target.label)}, "
            f"{seconds:.1f} s{rate}")  # fmt: skip


def _project(data: DataDir, name: str, asked: Asked, found: EventSummary, *, json_: bool) -> None:
    path, body = ("/projections/read/rebuild", None)
    if name == "index":
        path, body = ("/rebuild", {"project": asked.which.get("project")})
    began = time.monotonic()
    with _spinner(f"{name}: {found.events} events", quiet=json_):
        reply = call(data, "POST", path, json=body, timeout=httpx.Timeout(None, connect=5))
    seconds = time.monotonic() - began
    if json_:
        told = {
            "target": f"projection {name}",
            "events": found.events,
            "seconds": round(seconds, 3),
        }
        as_json(told | {"reply": reply.json()})
    else:
        rate = f", {found.events / seconds:,.0f}/s" if found.events else ""
        out(f"{found.events} events to projection {name}, {seconds:.1f} s{rate}")


def _spinner(text: str, *, quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(text)


def _counts(found: EventSummary) -> None:
    wide = max((len(c.project) for c in found.counts), default=0)
    for c in found.counts:
        out(f"{c.events:>9}  {c.project:<{wide}}  {c.type}")
    if found.first is None or found.first_recorded is None or found.last_recorded is None:
        out(f"no events; the log ends at {found.head}")
        return
    times = (
        f"{found.first_recorded:%Y-%m-%d %H:%M:%S} – {found.last_recorded:%Y-%m-%d %H:%M:%S} UTC"
    )
    out(f"{found.events:>9}  events, positions {found.first}–{found.last}, recorded {times}")
    note(f"the log ends at {found.head}")
