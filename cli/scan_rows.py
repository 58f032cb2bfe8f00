"""`kb scan --jsonl`: rows `{id, text}` in, rows `{id, verdict, score, findings}` out, in order."""

import json
import multiprocessing
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from os import sched_getaffinity
from pathlib import Path
from typing import Any, BinaryIO

from cli.output import raw
from services.scanner.judge import Judge

STDIN = "-"
_WAITING = 16
"""Rows that are read before the first of them is answered."""

_LARGE = 1 << 20
"""Characters; of rows beyond, no more are held than there are processes."""

_BOM = b"\xef\xbb\xbf"
_SCALARS = (str, int, float, bool)


class BadRow(ValueError):
    """A row that is none; says why, without quoting it. `id`: what it is called, if it says so."""

    def __init__(self, reason: str, id_: Any = None) -> None:
        super().__init__(reason)
        self.id = id_


@dataclass(frozen=True)
class Row:
    """A line of the input: its number from 1, and its text or what is wrong with it."""

    line: int
    id: Any
    text: str = ""
    error: str | None = None


def rows(file: str, judge: Judge, *, workers: int | None = None) -> bool:
    """Answer every row of a JSON Lines file, or of `-`, standard input, where it stands.

    A row that is none is answered with `{id, line, error}`. As much memory for a million rows as
    for a few; each row is answered without waiting for the next. `workers`: processes that scan;
    without it, as many as there are cores.

    Returns:
        Whether all rows were good.
    """
    good = True
    with _lines(file) as lines:
        for row, result in _judged(read(lines), judge, workers or len(sched_getaffinity(0))):
            good = good and row.error is None
            raw(_line(result))
    return good


@contextmanager
def _lines(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as stream:
        yield stream


def read(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows of UTF-8 JSON Lines; empty lines are no rows."""
    for number, line in enumerate(lines, start=1):
        data = line.removeprefix(_BOM) if number == 1 else line
        if not data.strip():
            continue
        try:
            id_, text = _row(data)
        except BadRow as bad:
            yield Row(number, bad.id, error=str(bad))
        else:
            yield Row(number, id_, text)


def _row(line: bytes) -> tuple[Any, str]:
    found = _object(line)
    id_ = found.get("id")
    if not isinstance(id_, _SCALARS):
        raise BadRow('no "id": a string or a number')
    text = found.get("text")
    if not isinstance(text, str):
        raise BadRow('no "text", or it is no string', id_)
    return id_, text


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode())
    except UnicodeDecodeError:
        raise BadRow("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise BadRow("not JSON: nested too deep") from None
    except ValueError:
        raise BadRow("not JSON: a number has too many digits") from None
    if not isinstance(found, dict):
        raise BadRow("no object")
    return found


def _line(result: dict[str, Any]) -> bytes:
    try:
        return json.dumps(result, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair in an id: as an escape it is the same id.
        return json.dumps(result).encode() + b"\n"


def _answer(row: Row, judge: Judge) -> dict[str, Any]:
    if row.error is not None:
        return {"id": row.id, "line": row.line, "error": row.error}
    result = judge.judge(row.text)
    findings = [finding.model_dump(mode="json") for finding in result.findings]
    return {"id": row.id, "verdict": result.verdict, "score": result.score, "findings": findings}


# -- several processes -----------------------------------------------------------------------------

Judged = tuple[Row, dict[str, Any]]


def _judged(found: Iterator[Row], judge: Judge, workers: int) -> Iterator[Judged]:
    if workers < 2 or not judge.forks:
        yield from ((row, _answer(row, judge)) for row in found)
        return
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, _take, (judge,))
    try:
        pool.submit(_ready).result()  # forks now, before there is a thread that reads
        yield from _in_order(found, judge, pool, workers)
    finally:
        pool.shutdown(cancel_futures=True)


_own: list[Judge] = []


def _take(judge: Judge) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _own.append(judge)


def _ready() -> None:
    """Done when a process is there."""


def _answer_there(row: Row) -> dict[str, Any]:
    return _answer(row, _own[0])


Answer = Future[dict[str, Any]]


def _in_order(found: Iterator[Row], judge: Judge, pool: Executor, workers: int) -> Iterator[Judged]:
    """Rows as they were read, each as soon as it and those before it are judged."""
    waiting: queue.Queue[tuple[Row, Answer | None] | OSError | None] = queue.Queue(_WAITING)

    def feed() -> None:
        large: deque[Answer] = deque(maxlen=workers)
        try:
            for row in found:
                answer = _submitted(row, pool)
                if answer is not None and len(row.text) > _LARGE:
                    if len(large) == workers:
                        wait(large, return_when=FIRST_COMPLETED)
                    large.append(answer)
                waiting.put((row, answer))
        except OSError as error:
            waiting.put(error)
        waiting.put(None)

    threading.Thread(target=feed, daemon=True, name="rows").start()
    while (item := waiting.get()) is not None:
        if isinstance(item, OSError):
            raise item
        row, answer = item
        yield row, _result(row, answer, judge)


def _submitted(row: Row, pool: Executor) -> Answer | None:
    """None: the processes are gone."""
    try:
        return pool.submit(_answer_there, row)
    except (BrokenProcessPool, RuntimeError):
        return None


def _result(row: Row, answer: Answer | None, judge: Judge) -> dict[str, Any]:
    """What a process found; of a row whose process died (killed for want of memory) our own."""
    if answer is None:
        return _answer(row, judge)
    try:
        return answer.result()
    except BrokenProcessPool:
        return _answer(row, judge)
