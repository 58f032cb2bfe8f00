"""Whether a text in Croatian or Serbian reads as Bosnian: a label, no language of its own."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from kernel.language.lexicon import KINDS

_CROATIAN = (-0.55, -0.31, 0.69, -1.53, -0.21, -0.30, 0.49, -1.30)
_SERBIAN = (-0.55, 0.91, -0.20, -0.13, -1.14, 1.03, -0.80, -0.41)
_SHIFTS = (0.14, -0.06)
"""Log odds of Croatian and of Serbian against Bosnian for each of the `Traits`, and with none of
them: multinomial regression, `python -m eval.language_bosnian`."""

_BAR = 0.7
_EKAVIAN_WEIGHS = 2
"""Bosnian is ijekavian; a word of the other form may be a name or a quotation, two are none."""


class Traits(NamedTuple):
    """Of a window in Latin script: the scores that lead to Bosnian and to Serbian, then how many
    words are of each of the `KINDS`."""

    bosnian: float
    serbian: float
    kinds: tuple[int, ...]


def reads_bosnian(windows: Iterable[tuple[Traits | None, float]]) -> bool:
    """Of the `windows` with their weights (letters in Croatian or Serbian).

    Text in Cyrillic has no traits and is not Bosnian: where it is the larger part, the Latin in it
    is names and terms. Ekavian words are Serbian whatever the scores say.
    """
    whole = latin = 0.0
    sums = [0.0] * (2 + len(KINDS))
    for traits, weight in windows:
        whole += weight
        if traits is not None:
            latin += weight
            for place, value in enumerate((traits.bosnian, traits.serbian, *traits.kinds)):
                sums[place] += value * weight
    if not whole or latin * 2 < whole:
        return False
    means = [value / latin for value in sums]
    counts = dict(zip(KINDS, means[2:], strict=True))
    if counts["ijekavian"] <= _EKAVIAN_WEIGHS * counts["ekavian"]:
        return False
    return _probability(means) > _BAR


def _probability(means: list[float]) -> float:
    others = (
        shift + sum(weight * mean for weight, mean in zip(weights, means, strict=True))
        for weights, shift in zip((_CROATIAN, _SERBIAN), _SHIFTS, strict=True)
    )
    return 1 / (1 + sum(math.exp(min(other, 700.0)) for other in others))
