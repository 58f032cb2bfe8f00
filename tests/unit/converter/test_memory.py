"""Too little memory is known for what it is, however a library tells it."""

import errno
import subprocess
import sys

import pytest

from kernel.errors import Refusal
from services.converter.memory import SHORT, is_short

THREAD = "Thread(target=fail).start(); time.sleep(60)"
ENDS = {
    "a thread that dies": THREAD,
    "a record with the error": "\ntry: fail()\nexcept MemoryError: logging.exception('lost')",
    "a record that names it": "\ntry: fail()\nexcept MemoryError as e: logging.error('%s', e)",
}
GOES_ON = {
    "another error in a thread": "Thread(target=lambda: 1 / 0).start()",
    "another record": "\ntry: 1 / 0\nexcept ZeroDivisionError: logging.exception('lost')",
}


def outcome(code: str) -> int:
    start = (
        "import logging, time\nfrom threading import Thread\n"
        "from services.converter.memory import give_up_when_short\n"
        "def fail(): raise MemoryError\ngive_up_when_short()\n"
    )
    run = [sys.executable, "-c", start + code]
    return subprocess.run(run, capture_output=True, timeout=30, check=False).returncode


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_a_process_ends_when_an_allocation_failed_that_nobody_was_told_of(code: str) -> None:
    assert outcome(code) == SHORT


@pytest.mark.parametrize("code", GOES_ON.values(), ids=GOES_ON)
def test_other_errors_end_no_process(code: str) -> None:
    assert outcome(code) == 0


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        RuntimeError("[ONNXRuntimeError] : 6 : Failed to allocate memory for requested buffer"),
        RuntimeError("Insufficient memory (Failed to allocate 1234 bytes in function 'f')"),
    ],
    ids=str,
)
def test_every_way_to_say_it_counts_also_behind_another_error(error: Exception) -> None:
    assert is_short(error)
    refusal = Refusal("corrupt-document", "it cannot be read")
    refusal.__cause__ = error
    assert is_short(refusal)


@pytest.mark.parametrize(
    "error", [ValueError("no table"), OSError(errno.ENOENT, "x"), Refusal("no-text", "none")]
)
def test_other_errors_do_not_count(error: Exception) -> None:
    assert not is_short(error)
