"""`kb up`, `kb down`, `kb status`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from cli.children import answers
from cli.datadir import DataDir
from cli.output import CliError, as_json, note, out
from cli.runstate import Lock, ProcessRecord, State, clear_leftovers, running, wait_for_end
from cli.supervisor import Ready, Stack, Supervisor, real_stack
from kernel.errors import KbError

STACK: Callable[[], Stack] = real_stack
"""Tests put a small fake stack here."""
_OTHER_SECONDS = 330.0
_DOWN_SECONDS = 150.0

Report = dict[str, Any]
"""`url`, `already_running`, once `admin_password`; or `error`."""


def up(data: DataDir, *, port: int | None, notify_fd: int | None, json_: bool) -> None:
    """Run the supervisor here until a signal, or say that one runs already.

    Raises:
        CliError: it does not come up.
    """
    data.prepare()
    lock = Lock(data)

    def tell(report: Report) -> None:
        _tell(report, notify_fd=notify_fd, json_=json_)

    try:
        if state := _take_or_find(lock, data):
            tell({"url": state.url, "already_running": True, "pid": state.supervisor.pid})
            return
        if left := clear_leftovers(data):
            note(f"cleared what a killed run left behind: {', '.join(left)}")
        supervisor = Supervisor(data, STACK(), note, port=port, environ=dict(os.environ))
        supervisor.run(lambda ready: tell(_report(ready)))
        note("stopped")
    except KbError as error:
        if notify_fd is not None:
            _send(notify_fd, {"error": str(error)})
        raise CliError("citelog did not start", str(error)) from error
    finally:
        lock.release()


def up_detached(data: DataDir, *, port: int | None, json_: bool) -> None:
    """Start the supervisor in the background; return when it is healthy.

    Raises:
        CliError: it does not come up.
    """
    data.prepare()
    read_fd, write_fd = os.pipe()
    command = [
        sys.executable, "-P", "-m", STACK().module, "up",
        "--data", str(data.root), "--notify-fd", str(write_fd),
    ]  # fmt: skip
    if port is not None:
        command += ["--port", str(port)]
    with data.log_file("supervisor").open("ab") as log:
        child = subprocess.Popen(
            command, pass_fds=[write_fd], start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip
    os.close(write_fd)
    try:
        with os.fdopen(read_fd) as pipe:
            text = pipe.read()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGTERM)
        child.wait()
        raise
    report: Report = json.loads(text) if text else {"error": "the supervisor ended; see its log"}
    if "error" in report:
        child.wait()
        raise CliError("citelog did not start", report["error"])
    _tell(report, notify_fd=None, json_=json_)


def down(data: DataDir, *, json_: bool) -> None:
    """Stop the stack of this folder; nothing to do is fine.

    Raises:
        CliError: it does not end in time.
    """
    was = None
    if data.run.is_dir():
        was = running(data)
        if was:
            with suppress(ProcessLookupError):
                os.kill(was.supervisor.pid, signal.SIGTERM)
        if not wait_for_end(data, _DOWN_SECONDS):
            raise CliError(
                "the supervisor does not end", f"process {was.supervisor.pid if was else '?'}"
            )
        _clear(data)
    if json_:
        as_json({"stopped": was is not None})
    else:
        out("stopped" if was else "not running")


def status(data: DataDir, *, json_: bool) -> int:
    """Print what runs; 0 all healthy, 1 something is not, 3 not running."""
    state = running(data)
    if state is None:
        as_json({"running": False, "data": str(data.root)}) if json_ else out("not running")
        return 3
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(_row, state.processes))
    healthy = state.phase == "ready" and all(row["healthy"] for row in rows)
    if json_:
        as_json(
            {
                "running": True,
                "phase": state.phase,
                "healthy": healthy,
                "url": state.url,
                "data": str(data.root),
                "pid": state.supervisor.pid,
                "processes": rows,
            }
        )
    else:
        _print_status(state, rows)
    return 0 if healthy else 1


def _row(entry: ProcessRecord) -> dict[str, Any]:
    alive = entry.process() is not None
    return {
        "name": entry.name, "kind": entry.kind, "pid": entry.pid, "port": entry.port,
        "address": entry.address, "restarts": entry.restarts, "alive": alive,
        "healthy": alive and answers(entry.kind, entry.port),
    }  # fmt: skip


def _print_status(state: State, rows: list[dict[str, Any]]) -> None:
    out(f"{state.phase}  {state.url}  supervisor {state.supervisor.pid}")
    for row in rows:
        word = "healthy" if row["healthy"] else "alive" if row["alive"] else "down"
        restarts = f"  restarts {row['restarts']}" if row["restarts"] else ""
        out(f"{row['name']:<16} {word:<8} {row['pid']:>8}  {row['address']}{restarts}")


def _take_or_find(lock: Lock, data: DataDir) -> State | None:
    """None when the lock is ours; else the state of the run that has it, once that is ready."""
    deadline = time.monotonic() + _OTHER_SECONDS
    while not lock.take():
        state = running(data)
        if state and state.phase == "ready":
            return state
        if time.monotonic() > deadline:
            raise CliError("another supervisor of this folder neither starts nor ends")
        time.sleep(0.1)
    return None


def _clear(data: DataDir) -> None:
    lock = Lock(data)
    if lock.take():
        clear_leftovers(data)
        lock.release()


def _report(ready: Ready) -> Report:
    report: Report = {"url": ready.url, "already_running": False, "pid": os.getpid()}
    if ready.admin_password:
        report["admin_password"] = ready.admin_password
    return report


def _send(fd: int, report: Report) -> None:
    with suppress(OSError), os.fdopen(fd, "w") as pipe:
        json.dump(report, pipe)


def _tell(report: Report, *, notify_fd: int | None, json_: bool) -> None:
    if notify_fd is not None:
        _send(notify_fd, report)
    elif json_:
        as_json(report)
    elif report["already_running"]:
        out(f"already running: {report['url']}")
    else:
        out(f"citelog is up: {report['url']}")
        if "admin_password" in report:
            out(f"sign in as admin; the password, shown this once: {report['admin_password']}")
