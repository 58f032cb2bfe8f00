"""Which words of a passage answer to the words of a question: forms of a word, not letters."""

import re
from collections.abc import Callable
from functools import cache
from importlib import resources

_CYRILLIC = str.maketrans(
    {
        "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "ђ": "đ", "е": "e", "ж": "ž", "з": "z",
        "и": "i", "ј": "j", "к": "k", "л": "l", "љ": "lj", "м": "m", "н": "n", "њ": "nj", "о": "o",
        "п": "p", "р": "r", "с": "s", "т": "t", "ћ": "ć", "у": "u", "ф": "f", "х": "h", "ц": "c",
        "ч": "č", "џ": "dž", "ш": "š",
    }
)  # fmt: skip


def matcher(question: str) -> Callable[[str], bool]:
    """A test whether a word of a text is a form of a content word of `question`."""
    words = {_fold(w) for w in re.findall(r"\w+", question[:8192])}
    content = {w for w in words if w not in _stop_words() and (len(w) > 1 or w.isdigit())}
    wanted = tuple(content or words)[:64]

    def matches(word: str) -> bool:
        folded = _fold(word)
        return any(_same(folded, w) for w in wanted)

    return matches


@cache
def _stop_words() -> frozenset[str]:
    text = (resources.files("services.ui") / "strings" / "stop_words.txt").read_text("utf-8")
    return frozenset(_fold(word) for word in text.split())


def _fold(word: str) -> str:
    """Lower case; Serbian Cyrillic in Latin letters, so that both scripts meet."""
    return word.casefold().translate(_CYRILLIC)


def _same(a: str, b: str) -> bool:
    """Equal, or alike but for an ending: three quarters of the shorter one are the same."""
    if a == b:
        return True
    short, long = sorted((a, b), key=len)
    ending = 3 if len(short) > 4 else 2
    stem = max(4, -(-3 * len(short) // 4))
    return len(short) >= 4 and len(long) - len(short) <= ending and short[:stem] == long[:stem]
