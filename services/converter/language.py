"""Language policy: accepted, refused, or taken in as `unknown` with a warning."""

from typing import NamedTuple

from kernel.errors import Refusal
from kernel.language import ACCEPTED, UNKNOWN, detect, prose

MIN_CHARACTERS = 200
"""Below this many characters of prose a judgement is not worth a refusal."""

_SURE = 0.85


class Judged(NamedTuple):
    """`language`: an accepted code or `unknown`; `warnings`: for the journal."""

    language: str
    warnings: tuple[str, ...]


def judge(text: str, accepted: frozenset[str] = ACCEPTED) -> Judged:
    """The language of a document's text.

    A foreign language is refused only when there is enough text and the detector is sure of it:
    losing a document of an accepted language is worse than taking in a stranger.

    Raises:
        Refusal: `language-not-accepted`.
    """
    if len(prose(text)) < MIN_CHARACTERS:
        return Judged(UNKNOWN, (f"language undetermined: under {MIN_CHARACTERS} characters",))
    found = detect(text)
    if found.code in accepted:
        return Judged(found.code, ())
    if found.code != UNKNOWN and found.confidence >= _SURE:
        raise Refusal(
            "language-not-accepted", f"the text is in a language not accepted: {found.code}"
        )
    return Judged(UNKNOWN, ("language undetermined: no accepted language is clear",))
