"""Language policy: accepted, refused, or taken in as `unknown` with a warning."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from kernel.errors import Refusal
from kernel.language import ACCEPTED, BOSNIAN, UNKNOWN, Identified, identify, prose
from kernel.projects import ProjectSettings

MIN_CHARACTERS = 200
"""Below this many characters of prose a judgement is not worth a refusal."""

REVISION = 2
"""Raised when the same text is judged otherwise: parses are cached with their judgement."""

_SURE = 0.8
_FOREIGN = 0.6
"""A refusal needs a main language so likely, and that so much of the text is foreign."""


class Judged(NamedTuple):
    """`language`: an accepted code or `unknown`; `warnings`: for the journal; `shares`: of each
    language that was found in the text, by code, largest first."""

    language: str
    warnings: tuple[str, ...]
    shares: dict[str, float]


@dataclass(frozen=True)
class Policy:
    """Which languages are taken in, and whether others are refused."""

    accepted: frozenset[str] = ACCEPTED
    check: bool = True

    @classmethod
    def of(cls, installation: frozenset[str], project: ProjectSettings) -> "Policy":
        """What an administrator chose for the project goes before what the installation has."""
        chosen = project.accepted_languages
        accepted = installation if chosen is None else frozenset(chosen)
        return cls(accepted, project.language_check)

    @property
    def told(self) -> dict[str, Any]:
        """As JSON; the inverse of `of_told`."""
        return {"accepted": sorted(self.accepted), "check": self.check}

    @classmethod
    def of_told(cls, told: dict[str, Any]) -> "Policy":
        """A policy that was told another process."""
        return cls(frozenset(told["accepted"]), bool(told["check"]))

    @property
    def cache_key(self) -> str:
        """What besides bytes and parser decides on a parse."""
        accepted = ",".join(sorted(self.accepted))
        return f"accepted={accepted} check={self.check} judge={REVISION}"


def judge(text: str, accepted: frozenset[str] = ACCEPTED, *, check: bool = True) -> Judged:
    """The language of a document's text.

    A foreign language is refused only when there is enough text and the detector is sure of it:
    losing a document of an accepted language is worse than taking in a stranger. With `check` off
    nothing is refused.

    Raises:
        Refusal: `language-not-accepted`.
    """
    found, words = identify(text), prose(text)
    if len(words) < MIN_CHARACTERS:
        warning = f"language undetermined: under {MIN_CHARACTERS} characters"
        return Judged(UNKNOWN, (warning,), found.shares)
    if found.code in accepted:
        return Judged(found.code, _bosnian(found), found.shares)
    if not _foreign(found, accepted) or not _runs(words):
        warning = "language undetermined: no accepted language is clear"
    elif check:
        raise Refusal(
            "language-not-accepted", f"the text is in a language not accepted: {found.code}"
        )
    else:
        warning = f"language undetermined: {found.code} is not accepted, the check is off"
    return Judged(UNKNOWN, (warning,), found.shares)


def _bosnian(found: Identified) -> tuple[str, ...]:
    if found.label != BOSNIAN:
        return ()
    return (f"the text reads as Bosnian: taken in as its nearest neighbour, {found.code}",)


def _foreign(found: Identified, accepted: frozenset[str]) -> bool:
    if found.code == UNKNOWN or found.confidence < _SURE * found.shares[found.code]:
        return False
    # What could not be named is no evidence: codes, names and abbreviations are most of it.
    harmless = accepted | {UNKNOWN}
    return sum(s for code, s in found.shares.items() if code not in harmless) >= _FOREIGN


def _runs(words: str) -> bool:
    """Whether it is running text: half of its letters in words that do not begin with a capital.

    An invoice or an index that is names, units and headings says little of its language. Where all
    is in capitals there is no telling.
    """
    if words.upper() == words:
        return True
    named = sum(len(word) for word in words.split() if word[0].isupper())
    return 2 * named <= len(words)
