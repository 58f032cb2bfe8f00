"""Memory: that which is free back to the system, and how to know that there was not enough."""

import ctypes
import errno
import logging
import os
import re
import threading
from collections.abc import Iterator
from typing import NoReturn

SHORT = 86
"""How a process ends that `give_up` ended."""

_SAID = re.compile(
    "MemoryError|bad_?alloc|OutOfMemory|out of memory|insufficient memory|allocation failed"
    "|(?:cannot|can't|could not|failed to|unable to) (?:re)?allocate"
    "|(?:cannot|can't) start new thread",
    re.I,
)


def give_back() -> None:
    """The C library would keep what a page or a document took, and grow around its pieces."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def says_short(message: str) -> bool:
    """Whether an error with this message is one of an allocation that failed.

    Libraries in C have errors of their own for that, and a thread needs memory too.
    """
    return bool(_SAID.search(message))


def is_short(error: BaseException) -> bool:
    """Whether an allocation failed, here or in what led to this error."""
    return any(
        isinstance(one, MemoryError)
        or (isinstance(one, OSError) and one.errno == errno.ENOMEM)
        or (not isinstance(one, UnicodeError) and says_short(str(one)))
        for one in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            left += [one.__cause__, one.__context__]


def give_up() -> NoReturn:
    """End this process at once, as one that had too little memory.

    Whoever waits for the thread that could not go on would wait for ever.
    """
    os._exit(SHORT)


def give_up_when_short() -> None:
    """From now on, of errors that end a thread, or that a library only logs.

    Records are made for the sake of the errors in them; to write none is for the caller.
    """
    usual, record_of = threading.excepthook, logging.getLogRecordFactory()

    def ended(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None and is_short(told.exc_value):
            give_up()
        usual(told)

    def logged(*told: object, **more: object) -> logging.LogRecord:
        record: logging.LogRecord = record_of(*told, **more)
        about = record.args if isinstance(record.args, tuple) else ()
        error = record.exc_info[1] if record.exc_info else None
        if any(isinstance(one, BaseException) and is_short(one) for one in (error, *about)):
            give_up()
        return record

    threading.excepthook = ended
    logging.setLogRecordFactory(logged)
