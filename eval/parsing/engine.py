"""A converter in a fresh process, with the time, processor time and memory each document takes."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil

ROOT = Path(__file__).parents[2]
PEERS = Path("/tmp/peers")
PACKAGES = "'markitdown[pdf,docx,pptx,xlsx,xls,outlook]' pdfplumber pypdf"
IN_PEERS = frozenset({"markitdown", "pypdf", "pdfplumber"})

_WORKER = Path(__file__).with_name("worker.py")
_POLL_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 0.5
_MIB = 1024 * 1024


class Run(NamedTuple):
    """One document: `answer` of the worker; wall and processor seconds; peak memory in MiB.

    `beside_mib`: peak of the worker itself, where `peak_mib` leaves it out; `together_mib`: of all
    at the same time, as far as it was seen.
    """

    answer: dict[str, Any]
    seconds: float
    cpu_seconds: float
    peak_mib: float
    beside_mib: float = 0.0
    together_mib: float = 0.0

    @property
    def text(self) -> str:
        return str(self.answer.get("text", ""))

    @property
    def error(self) -> str:
        return str(self.answer.get("error", ""))


class Engine:
    """A worker process; one that dies or takes too long is started again for the next document.

    Memory and processor time are those of the process and what it starts. Memory of `ours` is that
    of what it starts only, the product's parsing child: the worker stands for the service.
    """

    def __init__(self, name: str, *, timeout: float = 300, peers: Path = PEERS) -> None:
        self._name, self._timeout = name, timeout
        python = str(peers / "bin" / "python") if name in IN_PEERS else sys.executable
        self._command = [python, str(_WORKER), name]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and what it started."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)

    def ask(self, path: Path, **more: Any) -> Run:
        """Convert one document."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout  # both are pipes
        watch = _Watch(process.pid, children_only=self._name == "ours")
        over = threading.Event()
        late = threading.Timer(self._timeout, _end_late, (process, over))
        late.start()
        watch.start()
        started = time.perf_counter()
        try:
            process.stdin.write(json.dumps({"path": str(path), **more}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        seconds = time.perf_counter() - started
        late.cancel()
        watch.stop()
        if not line:
            self.close()
            answer = {
                "error": "timeout" if over.is_set() else "died",
                "reason": f"after {seconds:.0f} s",
            }
        else:
            answer = json.loads(line)
        peaks = (watch.peak / _MIB, watch.beside / _MIB, watch.together / _MIB)
        return Run(answer, seconds, watch.cpu_seconds, *peaks)

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


class _Watch(threading.Thread):
    """Follows a process tree while it works."""

    def __init__(self, pid: int, *, children_only: bool) -> None:
        super().__init__(daemon=True)
        self._root, self._children_only = psutil.Process(pid), children_only
        self._done = threading.Event()
        self._before = {p.pid: _cpu(p) for p in self._all()}
        self._after: dict[int, float] = {}
        self.peak = self.beside = self.together = 0.0
        for process in self._all():
            _forget_peak(process.pid)

    @property
    def cpu_seconds(self) -> float:
        """Processor time since the start, as far as it was seen."""
        return sum(now - self._before.get(pid, 0.0) for pid, now in self._after.items())

    def run(self) -> None:
        pause = _POLL_SECONDS
        while not self._done.wait(pause):
            self._look()
            # To look costs time itself: a long run is looked at less often.
            pause = min(_LONGEST_POLL_SECONDS, pause * 1.1)

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._look()
        self.peak = max([self.peak, *(_peak(p.pid) for p in self._all() if self._counts(p))])

    def _all(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _counts(self, process: psutil.Process) -> bool:
        return not (self._children_only and process == self._root)

    def _look(self) -> None:
        counted = beside = 0.0
        for process in self._all():
            with contextlib.suppress(psutil.Error):
                size = float(process.memory_info().rss)
                if self._counts(process):
                    counted += size
                else:
                    beside += size
                self._after[process.pid] = _cpu(process)
        self.peak, self.beside = max(self.peak, counted), max(self.beside, beside)
        self.together = max(self.together, counted + beside)


def _cpu(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _forget_peak(pid: int) -> None:
    """Let the kernel count the peak afresh; where it may not, the peak is that of the process."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")


def _peak(pid: int) -> float:
    """Highest resident bytes since `_forget_peak`."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024.0
    return 0.0


def _end_late(process: "subprocess.Popen[bytes]", over: threading.Event) -> None:
    over.set()
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    process.kill()
    process.wait()
