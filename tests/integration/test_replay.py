"""`kb replay` against the real route on a real Postgres: files, ranges, breaks, a real bus."""

import asyncio
import json
import os
import resource
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import nats
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response

from cli.main import main
from contracts.events import Failed
from kernel.db import pool
from kernel.embedded import EmbeddedNats
from kernel.log import Log, Pending
from kernel.provision import nats_config
from kernel.testing import received
from kernel.web import add_problem_handlers
from services.search.stream import PAGE, add_stream_route
from tests.conftest import on_database

EVENTS = 2 * PAGE + 400


async def fill(dsn: str, documents: int) -> None:
    """A receipt and a failure each, in two projects by turns."""
    db = await pool(dsn)
    log = Log(db)
    for n in range(documents):
        project = ("one", "two")[n % 2]
        event = received(project=project, document_id=uuid4().hex, version_id=uuid4().hex)
        failed = Failed(**event.ids, stage="converter", code="corrupt", reason="Повреждён")
        await log.append([Pending(event, uuid4(), uuid4(), "svc:ingest")])
        await log.append([Pending(failed, uuid4(), uuid4(), "svc:converter")])
    await db.close()


class Door:
    """The routes of events on a loopback port, which may break off."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.rebuilt: list[tuple[str, bytes]] = []
        self.breaks: list[int] = []
        """After so many bytes each of the next answers breaks off."""
        self.url = ""

    def app(self) -> FastAPI:
        """The routes."""

        @asynccontextmanager
        async def connected(app: FastAPI) -> AsyncIterator[None]:
            db = await pool(self.dsn)
            add_stream_route(app, Log(db))
            yield
            db.terminate()

        app = FastAPI(lifespan=connected)
        add_problem_handlers(app)
        app.add_middleware(Breaking, door=self)

        @app.post("/projections/read/rebuild")
        @app.post("/rebuild")
        async def rebuild(request: Request) -> dict[str, int]:
            self.rebuilt.append((request.url.path, await request.body()))
            return {"position": 7}

        return app


class Breaking:
    """ASGI: breaks an answer off."""

    def __init__(self, app: Any, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/events" or not self._door.breaks:
            await self._app(scope, receive, send)
            return
        rest = self._door.breaks.pop(0)
        if rest < 0:
            response = Response(status_code=-rest)
            await response(scope, receive, send)
            return

        async def some(message: Any) -> None:
            nonlocal rest
            body = message.get("body", b"")[:rest]
            rest -= len(body)
            await send(message | {"body": body} if "body" in message else message)
            if not rest:
                raise ConnectionResetError("broken off")

        await self._app(scope, receive, some)


async def copied(dsn: str, template: str, name: str) -> str:
    """A copy of a database to which nobody is connected."""
    owner = await asyncpg.connect(dsn)
    await owner.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    await owner.close()
    return on_database(dsn, name)


@pytest.fixture(scope="module")
def filled(postgres_dsn: str, migrated_template: str) -> str:
    """The name of a database with events."""
    dsn = asyncio.run(copied(postgres_dsn, migrated_template, "replay_filled"))
    asyncio.run(fill(dsn, EVENTS // 2))
    return "replay_filled"


@pytest.fixture
def door(postgres_dsn: str, filled: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    door = Door(asyncio.run(copied(postgres_dsn, filled, f"test_{secrets.token_hex(6)}")))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        door.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(door.app(), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "key")
        yield door
        server.should_exit = True
        thread.join()


def kb(*words: str) -> int:
    """Run `kb replay`; its exit code."""
    try:
        main(["replay", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def lines(file: Path) -> list[dict[str, Any]]:
    """Events of a file."""
    text = file.read_text("utf-8")
    assert text.endswith("\n") or not text
    return [json.loads(line) for line in text.splitlines()]


def positions(file: Path) -> list[int]:
    """Where the events of a file are in the log."""
    return [e["position"] for e in lines(file)]


def error(capsys: pytest.CaptureFixture[str]) -> str:
    """The line that says what is wrong."""
    return capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.usefixtures("door")
def test_a_file_gets_the_events_of_the_log_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    assert kb("--out", str(file)) == 0
    assert positions(file) == list(range(1, EVENTS + 1))
    assert lines(file)[1]["data"]["reason"] == "Повреждён"
    assert f"{EVENTS} events up to position {EVENTS}" in capsys.readouterr().out


@pytest.mark.usefixtures("door")
def test_standard_output_gets_nothing_but_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert kb("--from", "5", "--until", "9", "--type", "Failed") == 0
    printed = capsys.readouterr()
    assert [json.loads(x)["position"] for x in printed.out.splitlines()] == [6, 8]
    assert printed.err == ""


@pytest.mark.usefixtures("door")
def test_a_terminal_gets_a_bar_and_a_pipe_gets_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "replay", "--out"]
    piped = subprocess.run([*command, str(tmp_path / "a")], capture_output=True, check=True)
    assert piped.stderr == b""
    ours, theirs = os.openpty()
    wide = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    on_terminal = subprocess.Popen(
        [*command, str(tmp_path / "b")], env=wide, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:  # it ends with an error
        while part := terminal.read(4096):
            shown += part
    assert on_terminal.wait() == 0
    assert f"/{EVENTS:,} events".encode() in shown
    assert b"%" in shown


@pytest.mark.usefixtures("door")
def test_a_replay_that_was_killed_is_resumed_without_a_double_or_a_gap(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "cli.main", "replay", "--out", str(file)]
    for _ in range(3):
        running = subprocess.Popen([*command, "--resume"])
        size = file.stat().st_size if file.exists() else 0
        while running.poll() is None and (not file.exists() or file.stat().st_size <= size):
            time.sleep(0.001)
        running.kill()
        running.wait()
    assert kb("--out", str(file), "--resume") == 0
    assert positions(file) == list(range(1, EVENTS + 1))


@pytest.mark.usefixtures("door")
def test_filters_and_a_range_are_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    given = ("--from", "3", "--until", "1200", "--project", "two", "--type", "Failed")
    assert kb(*given, "--out", str(file)) == 0
    assert positions(file) == list(range(4, 1201, 4))
    first = lines(file)[0]
    one = tmp_path / "one.jsonl"
    assert kb("--stream", first["subject"], "--out", str(one)) == 0
    assert lines(one) == [first]


@pytest.mark.usefixtures("door")
def test_a_dry_run_tells_counts_and_the_range_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    assert kb("--dry-run", "--from", "11", "--until", "20", "--out", str(file)) == 0
    told = capsys.readouterr().out
    assert not file.exists()
    assert "        2  one  DocumentReceived" in told
    assert "       10  events, positions 11–20" in told
    assert kb("--dry-run", "--json", "--project", "one") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["events"], summary["head"]) == (EVENTS // 2, EVENTS)


@pytest.mark.parametrize("torn", [b"", b'{"specversion": "1.0", "pos', b"\x00" * 3000])
@pytest.mark.usefixtures("door")
def test_a_broken_off_file_goes_on_where_it_was(tmp_path: Path, torn: bytes) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    assert kb("--out", str(whole), "--type", "Failed") == 0
    half = whole.read_bytes().splitlines(keepends=True)[:321]
    part.write_bytes(b"".join(half) + torn)
    assert kb("--out", str(part), "--type", "Failed", "--resume") == 0
    assert part.read_bytes() == whole.read_bytes()
    assert kb("--out", str(part), "--type", "Failed", "--resume") == 0
    assert part.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("door")
def test_a_file_with_nothing_but_a_torn_line_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b'{"specver')
    assert kb("--out", str(file), "--resume", "--until", "3") == 0
    assert positions(file) == [1, 2, 3]


def test_a_finished_file_is_brought_up_to_date(door: Door, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    assert kb("--out", str(file), "--project", "one") == 0
    asyncio.run(fill(door.dsn, 2))
    assert kb("--out", str(file), "--project", "one", "--resume") == 0
    assert positions(file)[-3:] == [EVENTS - 2, EVENTS + 1, EVENTS + 2]
    assert len(positions(file)) == EVENTS // 2 + 2


def test_a_connection_that_breaks_off_costs_no_event(door: Door, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    door.breaks = [0, 100_000, 1, -503, 333_333]
    assert kb("--out", str(file)) == 0
    assert positions(file) == list(range(1, EVENTS + 1))
    assert door.breaks == []


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize(
    "other",
    [("--type", "Failed"), ("--from", "2"), ("--project", "one"), ("--until", "5"), ()],
    ids=str,
)
def test_a_file_of_another_replay_is_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: tuple[str, ...]
) -> None:
    file = tmp_path / "log.jsonl"
    assert kb("--out", str(file), "--until", "400") == 0
    if not other:  # an event in the middle is missing
        kept = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(kept[:7] + kept[8:]) + kept[9][:50])
    before = file.read_bytes()
    assert kb("--out", str(file), *other, "--resume") == 1
    assert "holds something else" in error(capsys)
    assert file.read_bytes() == before


@pytest.mark.usefixtures("door")
def test_a_file_that_is_no_replay_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    for notes in ("a line\nanother\n", "a line\nanother", '{"one": "line"}'):
        file.write_text(notes, "utf-8")
        assert kb("--out", str(file)) == 1
        assert "is there already" in error(capsys)
        assert kb("--out", str(file), "--resume") == 1
        assert "is no replay" in error(capsys)
        assert file.read_text("utf-8") == notes


def run_limited(file: Path, limit: int, *words: str) -> "subprocess.CompletedProcess[str]":
    """`kb replay` in a process whose files may not grow beyond `limit` bytes."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "cli.main", "replay", "--out", str(file), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=small)


@pytest.mark.usefixtures("door")
def test_a_disk_that_is_full_half_way_leaves_whole_lines_and_may_be_resumed(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    done = run_limited(file, 300_000)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "--resume" in done.stderr
    found = positions(file)
    assert found == list(range(1, len(found) + 1))
    assert 0 < len(found) < EVENTS
    assert kb("--out", str(file), "--resume") == 0
    assert positions(file) == list(range(1, EVENTS + 1))


@pytest.mark.usefixtures("door")
def test_a_full_device_and_a_missing_folder_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb("--out", "/dev/full") == 1
    assert error(capsys) == "error: cannot write /dev/full: No space left on device"
    assert kb("--out", str(tmp_path / "no" / "log.jsonl")) == 1
    assert "No such file or directory" in error(capsys)
    assert kb("--out", str(tmp_path)) == 1
    assert "cannot write" in error(capsys)
    assert kb("--out", os.devnull) == 0


@pytest.mark.usefixtures("door")
def test_two_replays_do_not_write_to_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import fcntl

    file = tmp_path / "log.jsonl"
    with file.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert kb("--out", str(file), "--resume") == 1
    assert "another replay writes to it" in error(capsys)


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--type", "Recieved"), "unknown-event-type"),
        (("--from", "999999"), f"beyond the log: 999999; it ends at {EVENTS}"),
        (("--until", "999999"), "beyond the log"),
        (("--from", "9", "--until", "8"), "the range is empty"),
        (("--from", "0"), "they count from 1"),
        (("--from", "9" * 30), "they count from 1"),
        (("--from", "yesterday"), "no position, no day and no instant"),
        (("--until", "2026-01-01T10:00"), "no instant with zone"),
        (("--project", "../x"), "invalid-request"),
        (("--out", "x", "--subject", "y"), "one of --out, --subject, --projection"),
        (("--jetstream",), "--subject"),
        (("--resume",), "--resume is about"),
        (("--projection", "docs"), "no such projection"),
        (("--projection", "read", "--from", "2"), "made from the whole log"),
        (("--projection", "read", "--project", "one"), "made from the whole log"),
        (("--projection", "index", "--type", "Failed"), "made from the whole log"),
        (("--projection", "index", "--until", "2026-01-01"), "made from the whole log"),
        (("--subject", "kb.evt.live.Parsed.v1"), "only the relay publishes"),
        (("--subject", "kb.evt"), "only the relay publishes"),
        (("--subject", "kb.*"), "is no subject"),
        (("--subject", "kb..x"), "is no subject"),
        (("--subject", "$JS.API.INFO"), "the server's own"),
        (("--subject", "kb.replay.x"), "there is no bus"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    assert kb(*words, "--data", str(tmp_path)) == 1
    assert said in error(capsys)
    assert list(tmp_path.iterdir()) == []


def test_projections_are_made_anew_by_their_services(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb("--projection", "read") == 0
    assert kb("--projection", "index", "--project", "one", "--json") == 0
    assert door.rebuilt == [("/projections/read/rebuild", b""), ("/rebuild", b'{"project":"one"}')]
    printed = capsys.readouterr().out.splitlines()
    assert f"{EVENTS} events to projection read" in printed[0]
    assert json.loads(printed[1])["reply"] == {"position": 7}


class Heard:
    """What comes to `kb.replay.mine` on a real bus while a command runs."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        users = {user: f"secret-{user}" for user in ("admin", "relay", "replay", "subscriber")}
        self.server = EmbeddedNats(tmp_path / "nats", config=nats_config(users))
        self.server.start()
        self.messages: list[Any] = []
        monkeypatch.setenv("KB_NATS_URL", self.url("replay"))

    def url(self, user: str) -> str:
        """The server as one of its users."""
        return self.server.url.replace("//", f"//{user}:secret-{user}@")

    def during(self, *words: str) -> int:
        """The exit code of the command."""

        async def note(message: Any) -> None:
            self.messages.append(message)

        async def listen() -> int:
            client = await nats.connect(self.url("subscriber"))
            await client.subscribe("kb.replay.>", cb=note)
            await client.flush()
            code = await asyncio.to_thread(kb, *words)
            await client.flush()
            await client.drain()
            return code

        return asyncio.run(listen())

    def positions(self) -> list[int]:
        """Of the events that came."""
        return [json.loads(m.data)["position"] for m in self.messages]


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    heard = Heard(tmp_path, monkeypatch)
    yield heard
    heard.server.stop()


@pytest.mark.usefixtures("door")
def test_a_subject_gets_the_events_with_headers_like_the_relay_s(
    heard: Heard, tmp_path: Path
) -> None:
    given = ("--subject", "kb.replay.mine", "--until", "700", "--data", str(tmp_path / "data"))
    assert heard.during(*given) == 0
    assert heard.positions() == list(range(1, 701))
    first = heard.messages[0]
    event = json.loads(first.data)
    assert first.headers["Nats-Msg-Id"] == event["id"]
    assert first.headers["ce-type"] == "kb.DocumentReceived"


def test_a_mark_says_how_far_a_subject_came(door: Door, heard: Heard, tmp_path: Path) -> None:
    given = ("--subject", "kb.replay.mine", "--type", "Failed", "--data", str(tmp_path / "data"))
    assert heard.during(*given) == 0
    asyncio.run(fill(door.dsn, 3))
    assert heard.during(*given, "--resume") == 0
    assert heard.positions() == list(range(2, EVENTS + 7, 2))
    # Another range has a mark of its own, and without --resume it is all of it.
    assert heard.during(*given, "--resume", "--from", str(EVENTS)) == 0
    assert heard.positions()[EVENTS // 2 + 3 :] == list(range(EVENTS, EVENTS + 7, 2))


@pytest.mark.usefixtures("door")
def test_a_subject_goes_on_after_the_bus_went_away(
    heard: Heard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cli import targets

    real, taken = targets.Subject.take, 0

    async def take(self: Any, lines: bytes, last: int) -> None:
        nonlocal taken
        taken += 1
        if taken == 2:
            heard.server.stop()
        await real(self, lines, last)

    monkeypatch.setattr(targets.Subject, "take", take)
    monkeypatch.setattr(targets, "ANSWER_SECONDS", 2)
    given = ("--subject", "kb.replay.mine", "--data", str(tmp_path / "data"))
    assert kb(*given) == 1
    assert "the bus did not take the events" in error(capsys)
    monkeypatch.setattr(targets.Subject, "take", real)
    heard.server.start()
    monkeypatch.setenv("KB_NATS_URL", heard.url("replay"))
    assert heard.during(*given, "--resume") == 0
    found = heard.positions()
    assert found == list(range(found[0], EVENTS + 1))
    assert found[0] > 1


@pytest.mark.usefixtures("door")
def test_what_the_bus_refuses_is_told(
    heard: Heard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--until", "3", "--data", str(tmp_path / "data"))
    assert heard.during("--subject", "mine", *given) == 1
    assert "permissions violation" in error(capsys).lower()
    assert kb("--subject", "kb.replay.mine", "--jetstream", *given) == 1
    assert "no stream stores the subject" in error(capsys)


@pytest.mark.usefixtures("door")
def test_a_stream_stores_each_event_once_even_when_it_is_sent_twice(
    heard: Heard, tmp_path: Path
) -> None:
    async def stored(make: bool) -> int:
        client = await nats.connect(heard.url("subscriber"))
        js = client.jetstream()
        if make:
            await js.add_stream(name="MINE", subjects=["kb.replay.mine"])
        messages = (await js.stream_info("MINE")).state.messages
        await client.close()
        return int(messages)

    given = [
        "--subject", "kb.replay.mine", "--jetstream", "--until", "50",
        "--data", str(tmp_path / "data"),
    ]  # fmt: skip
    assert asyncio.run(stored(make=True)) == 0
    assert kb(*given) == kb(*given) == 0
    assert asyncio.run(stored(make=False)) == 50
