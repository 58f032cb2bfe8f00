"""Memory that is free, back to the system."""

import ctypes


def give_back() -> None:
    """The C library would keep what a page or a document took, and grow around its pieces."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
