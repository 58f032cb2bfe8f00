"""Words that tell Croatian from Serbian. `python -m eval.language_words` makes the table."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from kernel.language.features import word_hashes

FILE = Path(__file__).with_name("words.npz")
KINDS = {
    "croatian": -1.29, "serbian": 1.82, "ijekavian": -1.87, "ekavian": 2.04,
    "croatian_use": -1.66, "serbian_use": 1.03,
}  # fmt: skip
"""Log odds of Serbian for each word of a kind, fitted on texts that are held apart for it and are
not reported on (`eval.language_words --fit`).

The first two are words that one spelling dictionary has and the other has not; the next two, words
of which the Serbian dictionary has both forms of old yat; the last two are in both dictionaries
and much more frequent in one language.
"""

_YAT = tuple(kind in {"ijekavian", "ekavian"} for kind in KINDS)

_WORD = re.compile(r"[^\W\d_]+")


def weighed(counts: tuple[int, ...]) -> float:
    """Log odds of Serbian from how many words are of each kind."""
    return sum(n * weight for n, weight in zip(counts, KINDS.values(), strict=True))


def kinds(text: str) -> tuple[int, ...]:
    """How many words of `text` are of each kind.

    Capitalised ones with old yat are left out: many are names of places (Rijeka, Bela Crkva), which
    are in the texts of both.
    """
    import numpy as np

    if text.isupper():
        text = text.lower()
    words = _WORD.findall(text)
    if not words:
        return (0,) * len(KINDS)
    known, kind, named = table()
    wanted = keys(" ".join(words).lower())
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    lower = np.array([word.islower() for word in words[: len(wanted)]], dtype=bool)
    found = kind[at[(known[at] == wanted) & (lower | named[at])]]
    return tuple(int(count) for count in np.bincount(found, minlength=len(KINDS)))


def keys(words: str) -> Any:
    """32 bits of the hash of each of the `words`, which have single spaces between them.

    The chance that two of 36,000 words have the same 32 bits is one in seven.
    """
    import numpy as np

    return (word_hashes(f" {words} ") >> np.uint64(32)).astype(np.uint32)


@cache
def table() -> tuple[Any, Any, Any]:
    """Sorted keys, the place in `KINDS` of each, whether it counts with a capital; read once."""
    import numpy as np

    with np.load(FILE, allow_pickle=False) as file:
        places = file["kinds"]
        return file["keys"], places, ~np.array(_YAT)[places]
