"""Signs of life of a parse: whoever waits for it measures the time since the last one.

A page or a slice that is finished (read or given up) is one. Nothing else: a library that is stuck
must not be able to give them.
"""

from collections.abc import Callable


class _Listener:
    def __init__(self) -> None:
        self.tell: Callable[[], None] = _nobody


def _nobody() -> None:
    pass


_listener = _Listener()


def listen(tell: Callable[[], None]) -> None:
    """`tell` is called whenever a part is finished, in the thread that parses."""
    _listener.tell = tell


def finished_part() -> None:
    """A page or a slice is done."""
    _listener.tell()
