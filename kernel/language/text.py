"""What of a text is prose, in pieces of one script."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_NOT_PROSE = re.compile(
    r"^(```|~~~).{0,3000}?^\1[`~]*\s*$"  # fenced code
    r"|`[^`\n]{1,200}`"
    r"|<[^<>\n]{1,300}>"
    r"|\]\([^)\n]{1,500}\)"  # the target of a link
    r"|\b(?:https?://|www\.)\S+"
    r"|\S+@\S+\.\w+"
    r"|&\w{2,8};"
    r"|[A-Za-z0-9_]*[_\d][A-Za-z0-9_]+",  # identifiers
    re.MULTILINE | re.DOTALL,
)
_SPACES = re.compile(r"[\W\d_]*\s[\W\d_]*")
_SAMPLE, _SLICES = 120_000, 6
_UNBROKEN = re.compile(r"(\S{100})(?=\S)")

WINDOW = 400
"""Characters of a piece: long enough to be sure of, short enough to tell mixed languages apart."""
_WINDOWS = 60


class Piece(NamedTuple):
    """Words of one script (ISO 15924); `letters`: how many it stands for."""

    text: str
    script: str
    letters: int


def prose(text: str) -> str:
    """`text` without code, addresses, identifiers and punctuation between words.

    Words end after 100 letters and a long text is sampled, so that no pattern takes longer than
    its length on a hostile text.
    """
    text = _UNBROKEN.sub(r"\1 ", _sampled(text))
    return _SPACES.sub(" ", _NOT_PROSE.sub(" ", text)).strip()


def _sampled(text: str) -> str:
    """Slices from all over a long text: what is looked at has a bound."""
    if len(text) <= _SAMPLE:
        return text
    size = _SAMPLE // _SLICES
    stride = (len(text) - size) // (_SLICES - 1)
    return "\n".join(text[n * stride : n * stride + size] for n in range(_SLICES))


def pieces(text: str) -> Iterator[Piece]:
    """Up to 60 windows over the prose of `text`, each in one piece a script."""
    cleaned = prose(text)
    wanted = -(-len(cleaned) // WINDOW)
    count = min(_WINDOWS, wanted)
    for number in range(count):
        if count == wanted:
            start, end = number * len(cleaned) // count, (number + 1) * len(cleaned) // count
        else:
            start = number * (len(cleaned) - WINDOW) // (count - 1)
            end = start + WINDOW
        yield from _by_script(cleaned[start:end])


_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[a-zA-Z\u00aa-\u024f\u1e00-\u1eff]+")
_CYRILLIC = re.compile(r"[\u0400-\u052f\u2de0-\u2dff\ua640-\ua69f]+")
_OTHERS = {
    "Grek": r"[\u0370-\u03ff\u1f00-\u1fff]", "Hebr": r"[\u0590-\u05ff]", "Thai": r"[\u0e00-\u0e7f]",
    "Arab": r"[\u0600-\u06ff\u0750-\u077f\ufb50-\ufeff]", "Armn": r"[\u0530-\u058f]",
    "Deva": r"[\u0900-\u097f]", "Beng": r"[\u0980-\u09ff]", "Taml": r"[\u0b80-\u0bff]",
    "Geor": r"[\u10a0-\u10ff\u1c90-\u1cbf]", "Hang": r"[\u1100-\u11ff\uac00-\ud7af]",
    "Jpan": r"[\u3040-\u30ff]", "Hani": r"[\u3400-\u9fff\U00020000-\U0003ffff]",
}  # fmt: skip
"""Han characters with kana among them are Japanese; alone they are `Hani`."""

OTHER = "Zzzz"
_ENOUGH, _PART = 30, 0.15


def _by_script(window: str) -> Iterator[Piece]:
    """A script with few letters in a window is names and terms: left out."""
    if window.isascii():
        found = {"Latn": _LATIN.findall(window)}
    else:
        found = {"Latn": _LATIN.findall(window), "Cyrl": _CYRILLIC.findall(window)}
    sizes = {script: sum(map(len, words)) for script, words in found.items()}
    everything = sum(map(len, _WORD.findall(window)))
    rest = everything - sum(sizes.values())
    if rest * 2 > everything:
        yield Piece(window, _other(window), everything)
        return
    most = max(sizes.values())
    for script, words in found.items():
        size = sizes[script]
        if size and (size == most or (size >= _ENOUGH and size >= _PART * everything)):
            yield Piece(" ".join(words), script, size)


def _other(window: str) -> str:
    counts = {script: len(re.findall(letters, window)) for script, letters in _OTHERS.items()}
    if counts["Jpan"] and counts["Jpan"] * 20 > counts["Hani"]:
        return "Jpan"
    script, most = max(counts.items(), key=lambda item: item[1])
    return script if most else OTHER
