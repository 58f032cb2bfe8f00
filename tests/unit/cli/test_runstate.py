"""Knowing our processes from strangers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.datadir import DataDir
from cli.runstate import (
    Lock,
    ProcessRecord,
    State,
    clear_leftovers,
    read_state,
    record,
    remember_port,
    remembered_port,
    running,
)


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    data = DataDir(tmp_path / "data")
    data.prepare()
    return data


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def _record(pid: int, command: list[str]) -> ProcessRecord:
    return record("x", "service", pid, command=command, port=1, address="")


def test_a_process_is_known_by_id_start_and_command(sleeper: subprocess.Popen[bytes]) -> None:
    entry = _record(sleeper.pid, ["sleep", "600"])
    assert entry.process() is not None
    assert entry.model_copy(update={"started": "other-boot:1"}).process() is None
    assert entry.model_copy(update={"cmdline": ["sleep", "1"]}).process() is None


def test_a_dead_child_that_nobody_waited_for_is_not_running(
    sleeper: subprocess.Popen[bytes],
) -> None:
    entry = _record(sleeper.pid, ["sleep", "600"])
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert entry.process() is None


def test_a_stranger_with_the_recorded_id_is_left_alone(
    data: DataDir, sleeper: subprocess.Popen[bytes]
) -> None:
    stranger = _record(sleeper.pid, ["sleep", "600"]).model_copy(update={"started": "boot:1"})
    me = _record(os.getpid(), ["python"])
    State(run_id="r", phase="ready", supervisor=me, processes=[stranger]).write(data)
    assert clear_leftovers(data) == []
    assert sleeper.poll() is None
    assert read_state(data) is None


def test_what_a_run_left_is_ended_marked_or_recorded(
    data: DataDir, sleeper: subprocess.Popen[bytes]
) -> None:
    marked = subprocess.Popen(["sleep", "601"], env={"KB_RUN_ID": "r1"}, start_new_session=True)
    entry = _record(sleeper.pid, ["sleep", "600"])
    State(run_id="r1", phase="ready", supervisor=entry, processes=[entry]).write(data)
    assert clear_leftovers(data) == ["worker", "x"]
    assert marked.poll() is not None
    assert sleeper.poll() is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 1}'])
def test_a_broken_state_file_is_no_state(data: DataDir, text: str) -> None:
    (data.run / "state.json").write_text(text)
    assert running(data) is None
    assert clear_leftovers(data) == []


def test_the_lock_is_exclusive_and_ends_with_its_process(data: DataDir) -> None:
    code = (
        "import sys; from pathlib import Path; from cli.datadir import DataDir;"
        "from cli.runstate import Lock;"
        "print(Lock(DataDir(Path(sys.argv[1]))).take(), flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(data.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    # `take` must keep its lock: the object above is dropped at once, the file stays open.
    assert other.stdout.readline() == "True\n"
    mine = Lock(data)
    assert mine.take() is False
    other.kill()
    other.wait()
    assert mine.take() is True
    mine.release()


def test_the_port_of_the_front_door_is_remembered(data: DataDir) -> None:
    assert remembered_port(data) is None
    remember_port(data, 4321)
    assert remembered_port(data) == 4321
    (data.run / "front-door.json").write_text("x")
    assert remembered_port(data) is None
