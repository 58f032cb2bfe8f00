"""A parsing child that does what the document says: the worst that a document could make it do."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from contracts.artifacts import BodyMeta, ParsedDocument
from services.converter.child import main
from services.converter.parsing.result import Parse
from services.converter.progress import finished_part
from services.converter.settings import ParseOptions


def obey(  # noqa: C901 - a list of crimes
    path: Path, media_type: str, options: ParseOptions
) -> Parse:
    """First word of the file: an order; the rest: its argument."""
    del options
    order, _, argument = path.read_text().partition(" ")
    match order:
        case "loop":
            while True:
                pass
        case "sleep":
            time.sleep(600)
        case "advance":
            _advance(*map(float, argument.split()))
        case "hog":
            _hog()
        case "programs":
            _programs(*map(int, argument.split()))
        case "grow":
            globals()["kept"] = b"x" * int(argument)
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(int(argument))
        case "killed":
            # The signal may reach another thread a moment later.
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
        case "full":
            raise OSError(errno.ENOSPC, "text of the document")
        case "raise":
            raise ValueError("text of the document")
        case "recurse":
            _recurse(0)
        case "environ":
            argument = repr(sorted(os.environ.items()))
        case "print":
            print(argument)
            sys.stdout.flush()
    meta = BodyMeta(title=str(os.getpid()), language="unknown", media_type=media_type)
    return Parse(ParsedDocument(markdown=argument, meta=meta))


def _advance(parts: float, seconds: float) -> None:
    for number in range(1, int(parts) + 1):
        while time.process_time() < number * seconds:
            pass
        finished_part()


def _hog() -> None:
    blocks = []
    while True:
        blocks.append(bytearray(b"x") * 20_000_000)


def _programs(count: int, size: int) -> None:
    """Each within the limits of a process, together over them."""
    order = f"kept = bytearray(b'x') * {size}; import time; time.sleep(60)"
    running = [subprocess.Popen([sys.executable, "-c", order]) for _ in range(count)]
    for program in running:
        program.wait()


def _recurse(depth: int) -> int:
    return _recurse(depth + 1) + 1


if __name__ == "__main__":
    main(obey)
