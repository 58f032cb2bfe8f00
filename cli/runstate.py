"""What is running: `run/state.json`, the lock of the supervisor, and what a crash left behind."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import psutil
from pydantic import BaseModel

from cli.datadir import DataDir, write_private

Phase = Literal["starting", "ready", "stopping"]
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess)


class ProcessRecord(BaseModel, hide_input_in_errors=True):
    """One process, and enough to know it from another one that got its id later."""

    name: str
    kind: Literal["supervisor", "postgres", "nats", "service"]
    pid: int
    started: str
    cmdline: list[str]
    port: int
    address: str
    restarts: int = 0

    def process(self) -> psutil.Process | None:
        """The living process, None if it is gone or the id is somebody else's."""
        try:
            found = psutil.Process(self.pid)
            same = started(self.pid) == self.started and _same(found.cmdline(), self.cmdline)
            alive = found.status() != psutil.STATUS_ZOMBIE
        except _GONE:
            return None
        return found if same and alive else None


class State(BaseModel, hide_input_in_errors=True):
    """The run of one supervisor."""

    run_id: str
    phase: Phase
    url: str = ""
    supervisor: ProcessRecord
    processes: list[ProcessRecord] = []

    def write(self, data: DataDir) -> None:
        """Replace the state file in one step."""
        write_private(data.run / "state.json", self.model_dump_json(indent=1) + "\n")


def read_state(data: DataDir) -> State | None:
    """The state file, None without a readable one."""
    try:
        return State.model_validate_json((data.run / "state.json").read_text())
    except (OSError, ValueError):
        return None


def running(data: DataDir) -> State | None:
    """The state of a living supervisor."""
    state = read_state(data)
    return state if state and state.supervisor.process() else None


def record(
    name: str, kind: Any, pid: int, *, command: list[str], port: int, address: str
) -> ProcessRecord:
    """Describe a process that was just started by `command`."""
    return ProcessRecord(
        name=name, kind=kind, pid=pid, started=started(pid), cmdline=command, port=port,
        address=address,
    )  # fmt: skip


def started(pid: int) -> str:
    """When a process started: the boot, and clock ticks since then.

    Not a time of day: that moves for a living process when the clock is set.

    Raises:
        psutil.NoSuchProcess: it is gone.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise psutil.NoSuchProcess(pid) from gone
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


class Lock:
    """An flock that ends with its process, however that ends."""

    def __init__(self, data: DataDir) -> None:
        self._path = data.run / "lock"
        self._fd: int | None = None

    def take(self) -> bool:
        """True if it is ours now."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Let it go."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def clear_leftovers(data: DataDir) -> list[str]:
    """End what a killed supervisor left behind; returns names. Only under the lock.

    Postgres gets a fast shutdown, everything else may be killed at any moment anyway.
    """
    state = read_state(data)
    if state is None:
        return []
    found = {p.pid: p for p in marked(state.run_id)}
    names = dict.fromkeys(found, "worker")
    gentle: set[int] = set()
    for entry in state.processes:
        if process := entry.process():
            found[process.pid], names[process.pid] = process, entry.name
            if entry.kind in ("postgres", "nats"):
                gentle.add(process.pid)
    _end(list(found.values()), gentle)
    (data.run / "state.json").unlink(missing_ok=True)
    return sorted(set(names.values()))


def marked(run_id: str) -> Iterator[psutil.Process]:
    """Processes whose environment carries the mark of that run: also children of children."""
    mark = f"KB_RUN_ID={run_id}".encode()
    for process in psutil.process_iter():
        with suppress(OSError, *_GONE):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if process.pid != os.getpid() and mark in environment.split(b"\0"):
                yield process


def _end(processes: list[psutil.Process], gentle: set[int]) -> None:
    for process in processes:
        with suppress(*_GONE):
            process.send_signal(signal.SIGINT if process.pid in gentle else signal.SIGKILL)
    _, alive = psutil.wait_procs(processes, timeout=30)
    for process in alive:
        with suppress(*_GONE):
            process.kill()
    psutil.wait_procs(alive, timeout=5)


def _same(living: list[str], recorded: list[str]) -> bool:
    """Empty: in the middle of an exec."""
    return not living or _comparable(living) == recorded


def _comparable(cmdline: list[str]) -> list[str]:
    """Without the words that `kernel.spawn` puts before the program it becomes."""
    for n, word in enumerate(cmdline):
        if word.endswith("kernel/spawn.py"):
            return cmdline[n + 4 :]
    return cmdline


def wait_for_end(data: DataDir, deadline_seconds: float) -> bool:
    """True once no supervisor holds the lock."""
    deadline = time.monotonic() + deadline_seconds
    lock = Lock(data)
    while not lock.take():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    lock.release()
    return True


def remembered_port(data: DataDir) -> int | None:
    """The port of the front door at the last start."""
    with suppress(OSError, ValueError):
        return int(json.loads((data.run / "front-door.json").read_text())["port"])
    return None


def remember_port(data: DataDir, port: int) -> None:
    """Keep the URL stable over restarts."""
    write_private(data.run / "front-door.json", json.dumps({"port": port}) + "\n")
