"""The child process that works on what strangers wrote: it gives up what it does not need, then
serves its parent.

`python -m services.converter.child MEMORY_BYTES CPU_SECONDS` says `ready` on stdout. Each request
is one line of JSON on stdin, `{"task", "path", "answer", …}`; the answer is a line `part` for each
part of the document that is finished (at most one a second), then one line of JSON, with the
`sizes` of what was written into the file `answer`, or with a `code` and a `reason`.
"""

import ctypes
import errno
import json
import logging
import math
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from kernel.errors import Refusal
from kernel.parsed import load
from services.converter.answer import Parts, write
from services.converter.language import Policy
from services.converter.memory import give_back, give_up_when_short, is_short
from services.converter.parsing.result import Parse
from services.converter.progress import listen
from services.converter.settings import ParseOptions
from services.converter.work import body_parts, head_of, parse_parts

Parser = Callable[[Path, str, ParseOptions], Parse]

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_STACK_BYTES = 64 * 1024 * 1024
_UNTOUCHED = 4
"""Of so many bytes that are used, one more may be reserved."""

READY = b"ready\n"
"""Said once, when the child has come up: before that no document is to blame."""

PART = b"part\n"
"""Said when a part of the document is finished: it is not stuck, however long it takes."""

NO_ROOM = "no-room"
"""Code of a full disk: the machine's fault, not the document's."""


def main(parse: Parser | None = None) -> None:
    """Give up rights, then answer until stdin ends."""
    memory, cpu_seconds = int(sys.argv[1]), int(sys.argv[2])
    # Libraries print; only we may write to the pipe.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    harden(memory)
    # A thread, because only a thread's stack can be made large enough for deep recursion in C.
    threading.stack_size(_STACK_BYTES)
    worker = threading.Thread(target=_serve, args=(parse or _parse, out, cpu_seconds))
    out.write(READY)
    out.flush()
    worker.start()
    # The threads of libraries need no such stack, and each counts as memory in full.
    threading.stack_size(0)
    worker.join()


def harden(memory: int) -> None:
    """No core files, few open files, no new rights, no network where the system allows it."""
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    resource.setrlimit(resource.RLIMIT_FSIZE, (memory, memory))
    # Counts private writable memory only: torch maps far more address space than it uses. Some of
    # that is never touched either. The parent, who counts what is, ends us first, unless all is
    # asked for at once: then this does, wherever we are.
    data = memory + memory // _UNTOUCHED
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    logging.disable(logging.WARNING)
    logging.lastResort = None
    logging.getLogger().addHandler(logging.NullHandler())
    give_up_when_short()
    warnings.simplefilter("ignore")


def _serve(parse: Parser, out: BinaryIO, cpu_seconds: int) -> None:
    listen(_Advance(out, cpu_seconds))
    for line in sys.stdin.buffer:
        _grant(cpu_seconds)
        header = _answer(parse, json.loads(line))
        out.write(json.dumps(header).encode() + b"\n")
        out.flush()
        if header.get("code") in {"parse-memory", "parse-crash"}:
            # After a failed allocation nothing in this process can be trusted.
            return
        # The next document may be hours away.
        give_back()


class _Advance:
    """Tells the parent of a finished part, and grants processor time for the next one."""

    def __init__(self, out: BinaryIO, cpu_seconds: int) -> None:
        self._out, self._cpu_seconds = out, cpu_seconds
        self._told = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._told >= 1:
            self._told = now
            _grant(self._cpu_seconds)
            self._out.write(PART)
            self._out.flush()


def _grant(cpu_seconds: int) -> None:
    """Processor time for one more document, or part of one, from now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = math.ceil(used.ru_utime + used.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_seconds, resource.RLIM_INFINITY))


def _answer(parse: Parser, request: dict[str, Any]) -> dict[str, Any]:
    """The header; reasons never hold text of the document."""
    try:
        parts = _parts(parse, request)
        with Path(request["answer"]).open("r+b") as file:
            return {"sizes": write(file, parts)}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a library raise
        return _told(error)


def _told(error: Exception) -> dict[str, Any]:
    if is_short(error):
        return {"code": "parse-memory", "reason": "an allocation failed"}
    if isinstance(error, Refusal):
        return {"code": error.code, "reason": error.reason}
    if isinstance(error, RecursionError):
        return {"code": "too-deep", "reason": "nested too deeply"}
    full = isinstance(error, OSError) and error.errno in _NO_ROOM
    return {"code": NO_ROOM if full else "parse-crash", "reason": _where(error)}


def _parts(parse: Parser, request: dict[str, Any]) -> Parts:
    path = Path(request["path"])
    if request["task"] == "parse":
        options = ParseOptions.model_validate(request["options"])
        policy = Policy.of_told(request["policy"]) if request["policy"] else None
        return parse_parts(parse(path, request["media_type"], options), policy)
    document = load(path).document
    if request["task"] == "recall":
        return [[head_of(document).to_bytes()]]
    return body_parts(document, request["title"])


def _where(error: Exception) -> str:
    """Type and place of an error, without its message: that may quote the document."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last else "?"
    return f"{type(error).__name__} at {place}"


def _parse(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing import parse

    return parse(path, media_type, options)


if __name__ == "__main__":
    main()
