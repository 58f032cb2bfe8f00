"""Fit the weights of `kernel.language.bosnian`: `python -m eval.language_bosnian --texts DIR`.

DIR has the clones of `eval/language_texts.py`. Texts are those that are held apart, but for novels,
whose Croatian is a century old; the Bosnian is news that is there in all three. Prints the weights
and the shift of each row.
"""

import argparse
import random
from pathlib import Path
from typing import Any

import numpy as np

from eval.language import pieces
from eval.language_sources import Texts
from eval.language_texts import running
from kernel.language.guess import guess
from kernel.language.text import pieces as windows

CLASSES = ("hr", "sr", "bs")
_SHARES = {"hr": 0.4, "sr": 0.4, "bs": 0.2}
_LENGTHS, _MOST = (140, 250, 400), 600
_PENALTY, _WEIGHT = 20.0, 6_000


def rows(texts: Texts) -> dict[tuple[str, str, int], Any]:
    """Language, set and length of the pieces → a row of traits and a one, for each piece."""
    found = {}
    for code in CLASSES:
        for name, strings in texts[code].items():
            for length in _LENGTHS:
                cut = pieces(strings, length)
                random.Random(2).shuffle(cut)
                found[code, name, length] = _traits(cut[:_MOST])
    return {key: part for key, part in found.items() if len(part)}


def _traits(cut: list[str]) -> Any:
    found = []
    for piece in cut:
        for window in windows(piece):
            told = guess(window)
            if told and told.traits:
                found.append((told.traits.bosnian, told.traits.serbian, *told.traits.kinds, 1.0))
    return np.array(found)


def fit(given: dict[tuple[str, str, int], Any]) -> Any:
    """Log odds of Croatian and of Serbian against Bosnian: a row each, the shift at the end.

    Multinomial regression by Newton's method with a penalty on squared weights; sets of a language
    count alike, and a fifth of all is Bosnian.
    """
    x = np.concatenate(list(given.values()))
    codes = [key[0] for key in given]
    y = np.concatenate(
        [
            np.tile([code == "hr", code == "sr"], (len(part), 1))
            for (code, *_), part in given.items()
        ]
    ).astype(float)
    w = np.concatenate(
        [
            np.full(len(part), _WEIGHT * _SHARES[code] / codes.count(code) / len(part))
            for (code, *_), part in given.items()
        ]
    )
    wide = x.shape[1]
    penalty = np.diag([_PENALTY] * (wide - 1) + [0.03])
    found = np.zeros((2, wide))
    for _ in range(40):
        odds = np.exp(np.clip(x @ found.T, -50, 50))
        p = odds / (1 + odds.sum(axis=1, keepdims=True))
        slope = (w[:, None] * (p - y)).T @ x + found @ penalty
        curve = np.zeros((2 * wide, 2 * wide))
        for i in range(2):
            for j in range(2):
                each = w * p[:, i] * ((i == j) - p[:, j])
                block = (x.T * each) @ x + penalty * (i == j)
                curve[i * wide : (i + 1) * wide, j * wide : (j + 1) * wide] = block
        found -= np.linalg.solve(curve, slope.ravel()).reshape(2, wide)
    return found


def main() -> None:
    """Print the weights."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--texts", type=Path, required=True, help="clones of the repositories")
    given = options.parse_args()
    texts = running(given.texts, held=True)
    for code in CLASSES:
        texts[code] = {k: v for k, v in texts[code].items() if not k.startswith("fiction")}
    for code, weights in zip(CLASSES, fit(rows(texts)), strict=False):
        print(code, *(f"{value:.2f}" for value in weights))


if __name__ == "__main__":
    main()
