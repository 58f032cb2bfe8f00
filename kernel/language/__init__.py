"""Which language a text is in: the accepted ones, Serbian in both scripts, and many others."""

from collections import Counter
from typing import NamedTuple

from kernel.language.bosnian import reads_bosnian
from kernel.language.guess import UNKNOWN, Guess, guess, identifier
from kernel.language.text import pieces, prose

__all__ = [
    "ACCEPTED", "BOSNIAN", "UNKNOWN", "Identified", "Language", "detect", "identifier", "identify",
    "prose",
]  # fmt: skip

ACCEPTED: frozenset[str] = frozenset({"en", "de", "bg", "ru", "sr", "mk", "hr", "sl"})
"""ISO 639-1 codes that the knowledge base takes in; Serbian in both scripts."""

BOSNIAN = "bs"
"""A label only: Bosnian has the code of its nearest neighbour, Croatian or Serbian."""

_ROUNDS = 4
_LEAST = 0.01


class Language(NamedTuple):
    """`code`: ISO 639-1 or `unknown`; `confidence`: 0 to 1."""

    code: str
    confidence: float


class Identified(NamedTuple):
    """`code`: ISO 639-1 of the main language, or `unknown`; `script`: ISO 15924 of most letters of
    that language; `shares`: of the document, by code, largest first, adding up to 1; `confidence`:
    0 to 1, that the main language is right; `label`: `bs` for what reads as Bosnian."""

    code: str
    script: str
    shares: dict[str, float]
    confidence: float
    label: str | None


NOTHING = Identified(UNKNOWN, "Zyyy", {}, 0.0, None)
"""`Zyyy` (common): no letters that could be judged."""


def detect(text: str) -> Language:
    """Main language of `text`: Markdown or plain, of any length. See `identify`."""
    found = identify(text)
    return Language(found.code, found.confidence)


def identify(text: str) -> Identified:
    """The languages of `text`: Markdown or plain, of any length, in bounded time.

    Code, addresses and markup are left out. Windows of 400 characters are judged each, a long text
    by 60 of them spread over it; a window in two scripts is judged in two parts. The shares are
    then fitted to the windows' probabilities and the windows judged again in their light (Saerens
    et al. 2002), so that one doubtful paragraph follows its document.
    """
    judged = [(piece, found) for piece in pieces(text) if (found := guess(piece)) is not None]
    if not judged:
        return NOTHING
    prior = _fitted([found for _, found in judged])
    letters: Counter[str] = Counter()
    scripts: Counter[tuple[str, str]] = Counter()
    certain: Counter[str] = Counter()
    for piece, found in judged:
        code, probability = _best(found, prior)
        letters[code] += piece.letters
        scripts[code, piece.script] += piece.letters
        certain[code] += probability * piece.letters  # type: ignore[assignment]
    whole = letters.total()
    ordered = sorted(letters, key=lambda code: (-letters[code], code))
    main = ordered[0]
    script = max((s for c, s in scripts if c == main), key=lambda s: (scripts[main, s], s))
    shares = {code: round(letters[code] / whole, 4) for code in ordered}
    confidence = round(min(1.0, certain[main] / whole), 4)
    label = _label(main, [found for _, found in judged], prior)
    return Identified(main, script, shares, confidence, label)


def _fitted(guesses: list[Guess]) -> dict[str, float]:
    """Shares that explain the windows best; a language that any window may be in keeps a little."""
    codes = {code for found in guesses for code in found.shares}
    prior = dict.fromkeys(codes, 1 / len(codes))
    if len(guesses) == 1:
        return prior
    for _ in range(_ROUNDS):
        sums = dict.fromkeys(codes, _LEAST)
        for found in guesses:
            weighted = {code: p * prior[code] for code, p in found.shares.items()}
            whole = sum(weighted.values())
            for code, p in weighted.items():
                sums[code] += p / whole * found.letters
        whole = sum(sums.values())
        prior = {code: max(_LEAST, value / whole) for code, value in sums.items()}
    return prior


def _best(found: Guess, prior: dict[str, float]) -> tuple[str, float]:
    likely = _likely(found, prior)
    code = max(likely, key=lambda c: (likely[c], c))
    return code, likely[code]


def _likely(found: Guess, prior: dict[str, float]) -> dict[str, float]:
    weighted = {code: p * prior[code] for code, p in found.shares.items()}
    whole = sum(weighted.values())
    return {code: value / whole for code, value in weighted.items()}


def _label(main: str, guesses: list[Guess], prior: dict[str, float]) -> str | None:
    """Bosnian, when what is in Croatian or Serbian reads so on the whole."""
    if main not in {"hr", "sr"}:
        return None
    windows = []
    for found in guesses:
        likely = _likely(found, prior)
        near = likely.get("hr", 0.0) + likely.get("sr", 0.0)
        windows.append((found.traits, near * found.letters))
    return BOSNIAN if reads_bosnian(windows) else None
