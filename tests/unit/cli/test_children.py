"""A child and its group."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cli import children
from cli.children import ServiceChild, answers, tail
from cli.supervisor import pause
from kernel.testing_wait import eventually

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""


def _child(tmp_path: Path, code: str) -> ServiceChild:
    command = [sys.executable, "-S", "-c", code]
    return ServiceChild("x", command, {"PATH": "/bin"}, 1, tmp_path / "x.log")


def _group(pid: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # others come and go meanwhile
            zombie = process.status() == psutil.STATUS_ZOMBIE
            if not zombie and os.getpgid(process.pid) == pid:
                found.append(process)
    return found


async def test_a_child_that_ignores_sigterm_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "GRACE_SECONDS", 0.2)
    child = _child(tmp_path, STUBBORN)
    child.start()
    await eventually(lambda: "ready" in tail(child.log_file))
    pid = child.pid
    assert pid is not None and len(_group(pid)) == 2
    child.stop()
    assert child.pid is None
    await eventually(lambda: not _group(pid))  # killed; the kernel may take a moment


async def test_the_rest_of_a_group_ends_with_its_leader(tmp_path: Path) -> None:
    child = _child(tmp_path, STUBBORN)
    child.start()
    await eventually(lambda: "ready" in tail(child.log_file))
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: child.pid is None)
    await eventually(lambda: _group(pid) == [])


def test_stopping_what_ended_by_itself_does_no_harm(tmp_path: Path) -> None:
    child = _child(tmp_path, "")
    child.start()
    os.waitid(os.P_PID, child.pid or 0, os.WEXITED | os.WNOWAIT)
    child.stop()
    assert child.pid is None


def test_stopping_what_never_started_does_no_harm(tmp_path: Path) -> None:
    _child(tmp_path, "").stop()


def test_a_child_has_exactly_the_given_environment(tmp_path: Path) -> None:
    os.environ["KB_LEAK"] = "1"
    child = _child(tmp_path, "import os; print(sorted(os.environ), flush=True)")
    child.start()
    os.waitid(os.P_PID, child.pid or 0, os.WEXITED | os.WNOWAIT)
    assert "KB_LEAK" not in tail(child.log_file) and "PATH" in tail(child.log_file)


def test_nobody_answers_on_a_closed_port() -> None:
    assert not answers("service", 1)
    assert not answers("postgres", 1)


def test_pauses_grow_and_have_an_end() -> None:
    assert [pause(n, 30) for n in (1, 2, 3, 20, 5000)] == [0.5, 1, 2, 30, 30]
    assert pause(20, 0.5) == 0.5


def test_the_tail_of_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "no.log") == ""
