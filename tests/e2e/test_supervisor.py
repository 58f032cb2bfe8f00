"""`kb up`, `kb down`, `kb status`: real Postgres and nats-server, fake services."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from cli.datadir import DataDir
from cli.runstate import marked, read_state
from kernel.testing_wait import eventually

ROOT = Path(__file__).parents[2]
NAMES = ["postgres", "nats", "relay", "ingest", "scanner", "converter", "indexer+search", "ui"]
SERVICES = NAMES[2:]

pytestmark = pytest.mark.slow


class Kb:
    """The CLI over the fake stack, on one data folder."""

    def __init__(self, root: Path) -> None:
        self.data = DataDir(root)
        self.run_ids: set[str] = set()

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "tests.e2e.fakestack", *words]
        return subprocess.Popen(
            [*command, "--data", str(self.data.root)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "KB_RESTART_PAUSE_MAX": "0.2"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, *words: str, exit_code: int | None = 0) -> Any:
        """The JSON that the command prints."""
        process = self.start(*words, "--json")
        out, err = process.communicate(timeout=120)
        assert exit_code in (None, process.returncode), (process.returncode, out, err)
        self.note_run()
        return json.loads(out)

    def note_run(self) -> None:
        if state := read_state(self.data):
            self.run_ids.add(state.run_id)

    def up(self) -> Any:
        return self("up", "--detach")

    def pids(self) -> dict[str, int]:
        return {p["name"]: p["pid"] for p in self("status", exit_code=None)["processes"]}

    def left(self) -> list[int]:
        """Processes of any run so far that still live."""
        self.note_run()
        services = [p.pid for run in self.run_ids for p in marked(run)]
        servers = [p.pid for p in psutil.process_iter() if _serves(p, self.data.root)]
        return services + servers


def _serves(process: psutil.Process, root: Path) -> bool:
    try:
        line = process.cmdline()
        return str(root / "postgres") in line or str(root / "nats" / "server.conf") in line
    except psutil.Error:
        return False


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[Kb]:
    kb = Kb(tmp_path / "data")
    yield kb
    kb("down", exit_code=None)
    for pid in kb.left():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        pytest.fail(f"process {pid} was left behind")


def _supervisor(kb: Kb) -> psutil.Process:
    state = read_state(kb.data)
    assert state is not None
    return psutil.Process(state.supervisor.pid)


async def _owner_value(kb: Kb, query: str) -> Any:
    password = kb.data.settings({})["KB_OWNER_PASSWORD"]
    port = next(p["port"] for p in kb("status")["processes"] if p["name"] == "postgres")
    dsn = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def test_a_detached_start_returns_when_all_is_healthy(kb: Kb) -> None:
    report = kb.up()
    status = kb("status")
    assert status["healthy"] and status["url"] == report["url"]
    assert [p["name"] for p in status["processes"]] == NAMES
    assert all(p["healthy"] for p in status["processes"])
    assert len({p["port"] for p in status["processes"]}) == len(NAMES)


def test_a_second_start_says_the_url_and_changes_nothing(kb: Kb) -> None:
    first, before = kb.up(), kb.pids()
    foreground, detached = kb("up"), kb.up()
    for again in (foreground, detached):
        assert again["already_running"] and again["url"] == first["url"]
        assert "admin_password" not in again
    assert kb.pids() == before


def test_two_starts_at_once_make_one_stack(kb: Kb) -> None:
    both = [kb.start("up", "--detach", "--json") for _ in range(2)]
    reports = [json.loads(p.communicate(timeout=120)[0]) for p in both]
    assert [p.returncode for p in both] == [0, 0]
    assert sorted(r["already_running"] for r in reports) == [False, True]
    assert reports[0]["url"] == reports[1]["url"]


def test_down_leaves_no_process_and_the_url_stays(kb: Kb) -> None:
    first = kb.up()
    assert kb("down") == {"stopped": True}
    assert kb.left() == []
    assert kb("status", exit_code=3)["running"] is False
    second = kb.up()
    assert second["url"] == first["url"]
    assert "admin_password" in first and "admin_password" not in second


def test_down_of_nothing_is_fine(kb: Kb) -> None:
    assert kb("down") == {"stopped": False}
    assert not kb.data.root.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_the_foreground_stops_everything(kb: Kb, number: int) -> None:
    process = kb.start("up")
    assert process.stdout is not None
    assert "citelog is up: http://127.0.0.1:" in process.stdout.readline()
    kb.note_run()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert kb.left() == []
    order = [line.split()[1] for line in err.splitlines() if line.startswith("stopping")]
    assert order == NAMES[::-1]


async def test_a_signal_while_starting_stops_everything(kb: Kb) -> None:
    process = kb.start("up")
    await eventually(lambda: kb.data.run.exists() and read_state(kb.data))
    kb.note_run()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert kb.left() == []


async def test_kill_9_takes_the_children_along_and_the_next_start_recovers(kb: Kb) -> None:
    first = kb.up()
    await _owner_value(kb, "CREATE TABLE kept AS SELECT 7 AS n")
    _supervisor(kb).kill()
    await eventually(lambda: not kb.left(), deadline=30)
    second = kb.up()
    assert second["url"] == first["url"] and not second["already_running"]
    assert await _owner_value(kb, "SELECT n FROM kept") == 7


async def test_a_start_right_after_kill_9_recovers(kb: Kb) -> None:
    kb.up()
    _supervisor(kb).kill()
    assert not kb.up()["already_running"]
    assert kb("status")["healthy"]


async def test_the_next_start_clears_a_grandchild_that_had_its_own_session(kb: Kb) -> None:
    kb.data.root.mkdir()
    (kb.data.root / "child-converter").touch()
    kb.up()
    (kb.data.root / "child-converter").unlink()
    old = next(iter(kb.run_ids))
    _supervisor(kb).kill()
    await eventually(lambda: [p.name() for p in marked(old)] == ["sleep"], deadline=30)
    kb.up()
    assert list(marked(old)) == []


async def test_stopping_takes_a_grandchild_along(kb: Kb) -> None:
    kb.data.root.mkdir()
    (kb.data.root / "child-converter").touch()
    kb.up()
    kb("down")
    assert kb.left() == []


@pytest.mark.parametrize("name", ["ingest", "nats", "postgres"])
async def test_what_is_killed_comes_back_on_its_port(kb: Kb, name: str) -> None:
    kb.up()
    before = _entry(kb, name)
    os.kill(before["pid"], signal.SIGKILL)

    def back() -> bool:
        now = _entry(kb, name)
        return bool(now["pid"] != before["pid"] and now["healthy"] and now["restarts"] == 1)

    await eventually(back, deadline=30, every=0.3)
    assert _entry(kb, name)["port"] == before["port"]


def _entry(kb: Kb, name: str) -> Any:
    return next(p for p in kb("status", exit_code=None)["processes"] if p["name"] == name)


def test_a_service_that_does_not_start_is_told_with_its_log(kb: Kb) -> None:
    kb.data.root.mkdir()
    (kb.data.root / "die-scanner").touch()
    problem = kb("up", "--detach", exit_code=1)
    assert "scanner does not come up" in problem["detail"]
    assert "broken on purpose" in problem["detail"]
    assert kb.left() == []


def test_the_first_password_survives_a_start_that_failed(kb: Kb) -> None:
    kb.data.root.mkdir()
    broken = kb.data.root / "die-scanner"
    broken.touch()
    kb("up", "--detach", exit_code=1)
    kept = (kb.data.run / "bootstrap").read_text()
    broken.unlink()
    assert kb.up()["admin_password"] == kept
    assert not (kb.data.run / "bootstrap").exists()


def test_secrets_are_private_kept_and_never_logged(kb: Kb) -> None:
    kb.data.root.mkdir()
    kb.data.env_file.write_text("# mine\nKB_API_KEY=my-own-key\n")
    password = kb.up()["admin_password"]
    env = kb.data.env_file
    assert env.read_text().startswith("# mine\nKB_API_KEY=my-own-key\n")
    assert env.stat().st_mode & 0o077 == 0
    secrets = [*kb.data.settings({}).values(), password]
    logs = "".join(f.read_text() for f in kb.data.logs.iterdir())
    assert [s for s in secrets if len(s) > 8 and s in logs] == []
    assert password not in env.read_text()


def test_each_process_gets_its_own_secrets_only(kb: Kb) -> None:
    kb.up()
    settings, pids = kb.data.settings({}), kb.pids()
    relay = psutil.Process(pids["relay"]).environ()
    assert "KB_API_KEY" not in relay and "KB_BLOBS" not in relay
    assert settings["KB_DB_PASSWORD_RELAY"] in relay["KB_POSTGRES_URL"]
    for name in SERVICES:
        values = "\n".join(psutil.Process(pids[name]).environ().values())
        assert settings["KB_OWNER_PASSWORD"] not in values
        assert settings["KB_BUS_PASSWORD_ADMIN"] not in values


def test_a_wanted_port_is_used_and_a_taken_one_told(kb: Kb) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "in use" in kb("up", "--detach", "--port", str(port), exit_code=1)["detail"]
    assert kb("up", "--detach", "--port", str(port))["url"].endswith(f":{port}")
