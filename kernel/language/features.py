"""A text as hashed features: runs of one to six characters, words, and pairs of words."""

import re
from functools import cache
from typing import Any, NamedTuple

LONGEST = 6
"""Characters in the longest run."""

MOST = 4_000
"""Characters of normalised text that are looked at; callers pass windows, which are shorter."""

_WORD = re.compile(r"[^\W\d_]+")


class Features(NamedTuple):
    """64-bit hashes of one text: `runs[n - 1]` of n characters, `words`, `pairs` of words."""

    runs: tuple[Any, ...]
    words: Any
    pairs: Any


def normalised(text: str) -> str:
    """Words in lower case between single spaces: digits and signs say nothing of a language."""
    return f" {' '.join(_WORD.findall(text.lower()))} "[:MOST]


def features(text: str) -> Features:
    """Hashes of a `normalised` text.

    Polynomial hashing modulo 2^64 (Karp and Rabin 1987): a run of n is made from the run of n - 1,
    a word from two prefix sums, so that all of it is a few passes over an array of code points.
    """
    step, powers, salts, spread = _constants()
    codes = _codes(text)
    run, runs = codes, []
    for length in range(1, LONGEST + 1):
        if length > 1:
            run = run[:-1] * step + codes[length - 1 :]
        runs.append((run ^ salts[length]) * spread)
    words, sums, starts, ends = _words(codes)
    first = starts[:-1]
    pairs = (((sums[ends[1:]] - sums[first]) * powers[MOST - first]) ^ salts[-1]) * spread
    return Features(tuple(runs), words, pairs)


def word_hashes(text: str) -> Any:
    """The hashes that `features` gives to the words of a text with spaces around each word."""
    return _words(_codes(text[:MOST]))[0]


def _codes(text: str) -> Any:
    import numpy as np

    raw = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return raw.astype(np.uint64)


def _words(codes: Any) -> tuple[Any, Any, Any, Any]:
    """Hashes of the words, sums up to each place, and where words start and end."""
    import numpy as np

    _, powers, salts, spread = _constants()
    spaces = np.flatnonzero(codes == 32)
    sums = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.cumsum(codes * powers[: len(codes)], out=sums[1:])
    starts, ends = spaces[:-1] + 1, spaces[1:]
    hashes = (((sums[ends] - sums[starts]) * powers[MOST - starts]) ^ salts[0]) * spread
    return hashes, sums, starts, ends


@cache
def _constants() -> tuple[Any, Any, Any, Any]:
    """Odd multipliers (FNV's prime, the golden ratio) and a salt for each kind of feature."""
    import numpy as np

    step = np.uint64(0x100000001B3)
    powers = np.cumprod(np.full(MOST + 2, step, dtype=np.uint64))
    salts = np.cumprod(np.full(LONGEST + 2, 0x9E3779B97F4A7C15, dtype=np.uint64))
    return step, powers, salts, np.uint64(0xD6E8FEB86659FD93)
