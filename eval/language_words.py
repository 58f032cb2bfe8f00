"""Make the table of words that tell Croatian from Serbian: `python -m eval.language_words`.

`--work DIR --texts DIR` (those of `eval.train_language`; packages are fetched when they are not
there) writes `kernel/language/words.npz`; ten minutes at first, one when `frequencies-*.json` are
in the first. `--fit DIR` instead prints the weights fitted on the texts that are held apart for
that (see `eval/language_texts.py`; DIR has the clones), and how often each set is told right by
weights fitted on the other sets. The novels are only told of: their Croatian is a century old.

Every form of the spelling dictionaries `hunspell-hr` and `hunspell-sr` is made by their affix
rules (`eval/language_dictionaries.py`). Kept are forms that are met in text and whose frequency
there points the same way (twice as frequent or more): so names, foreign words and gaps of a
dictionary drop out. That frequency is the mean, by `_TRUST`, of three: in news on the web, counted;
in news and web text, solved for; in film subtitles. The Serbian dictionary is
ekavian and ijekavian: of a pair of old yat, the ijekavian word tells Croatian from the Serbian that
is written most, the other one Serbian. Shipped are hashes.
"""

import argparse
import math
import random
import re
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from eval import language_sources as sources
from eval.language import pieces
from eval.language_dictionaries import has, spelling, yat
from eval.language_texts import running, written
from eval.train_language import MASK, speech, word_frequencies
from kernel.language import lexicon, prose
from kernel.language.features import features, normalised
from kernel.language.model import scores

_MASKED = re.compile(rf"{MASK}|kosov|crnogor|makedon")
_LEAST = 3e-7
"""Added to a frequency, so that a rare word says little."""
_TRUST = {"written": 0.6, "solved": 0.2, "spoken": 0.2}
"""Weights of the three frequencies."""
_TWICE, _MUCH = 0.7, 1.5
"""Natural logarithm of the ratio of frequencies: of a word that one dictionary has, of one that
both have."""
_FOREIGN = 2e-6


def _used(work: Path, texts: Path) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Croatian and Serbian → word → share of all words; and words of other languages."""
    catalogues = sources.catalogues(work)
    solved = {code: word_frequencies(work, code, catalogues) for code in ("hr", "sr", "en", "de")}
    solved["sr"] = {sources.latin(word): share for word, share in solved["sr"].items()}
    foreign = {w for code in ("en", "de") for w, share in solved[code].items() if share > _FOREIGN}
    heard, used = speech(texts), {}
    for code in ("hr", "sr"):
        tables = {"written": written(texts, code), "solved": solved[code], "spoken": heard[code]}
        mean: dict[str, float] = defaultdict(float)
        for name, table in tables.items():
            for word, share in table.items():
                mean[word] += _TRUST[name] * share
        used[code] = mean
    return used, foreign


def kinds(work: Path, texts: Path) -> dict[str, set[str]]:
    """Kind (see `kernel.language.lexicon.KINDS`) → words."""
    read = {code: spelling(work, code) for code in sources.DICTIONARIES}
    croatian, serbian = ({f for e in read[code] for f in e.forms} for code in ("hr", "sr"))
    ijekavian, ekavian = yat(read["sr"])
    used, foreign = _used(work, texts)
    found: dict[str, set[str]] = {kind: set() for kind in lexicon.KINDS}
    for word in used["hr"].keys() | used["sr"].keys():
        if len(word) < 3 or word in foreign or _MASKED.match(word):
            continue
        shares = [used[code].get(word, 0.0) + _LEAST for code in ("sr", "hr")]
        lean = math.log(shares[0] / shares[1])
        kind, towards, bar = _kind(word, lean, croatian, serbian, ijekavian, ekavian)
        if towards * lean > bar:
            found[kind].add(word)
    return found


def _kind(
    word: str,
    lean: float,
    croatian: set[str],
    serbian: set[str],
    ijekavian: set[str],
    ekavian: set[str],
) -> tuple[str, int, float]:
    """Kind, which way it points, and how far the frequencies must lean that way."""
    if word in ijekavian:
        return "ijekavian", -1, _TWICE
    if word in ekavian and word not in croatian:
        return "ekavian", 1, _TWICE
    mine, theirs = has(croatian, word), has(serbian, word)
    if mine and not theirs:
        return "croatian", -1, _TWICE
    if theirs and not mine:
        return "serbian", 1, _TWICE
    return ("serbian_use", 1, _MUCH) if lean > 0 else ("croatian_use", -1, _MUCH)


def write(found: dict[str, set[str]]) -> None:
    """The table: sorted keys; of two words with one key, the later kind is left out."""
    places: dict[int, int] = {}
    for place, words in enumerate(found.values()):
        for word in sorted(words):
            places.setdefault(int(lexicon.keys(word)[0]), place)
    keys = sorted(places)
    kept = np.array([places[key] for key in keys], dtype=np.int8)
    np.savez_compressed(lexicon.FILE, keys=np.array(keys, dtype=np.uint32), kinds=kept)


Rows = dict[tuple[str, str, int], Any]
"""Set, language and length of the pieces → a row a piece."""


def rows(texts: sources.Texts) -> Rows:
    """Figures of all pieces of 60, 140 and 250 characters, at most `_MOST` of each kind."""
    found: Rows = {}
    for code in ("hr", "sr"):
        for (name, strings), length in product(texts[code].items(), _LENGTHS):
            cut = pieces(strings, length)
            cut = random.Random(1).sample(cut, _MOST) if len(cut) > _MOST else cut
            found[name, code, length] = np.array([_row(piece) for piece in cut])
    return found


_LENGTHS, _MOST = (60, 140, 250), 800


def fit(given: Rows) -> Any:
    """Weights of the tables' scores and of each kind, then the shift.

    Logistic regression by Newton's method with a penalty of 1.5 per squared weight; sets, lengths
    and the two languages count alike.
    """
    x = np.concatenate(list(given.values()))
    y = np.concatenate([np.full(len(part), float(key[1] == "sr")) for key, part in given.items()])
    w = np.concatenate([np.full(len(part), 200 / len(part)) for part in given.values()])
    penalty = np.diag([3.0] * (x.shape[1] - 1) + [0.03])
    found = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (w * (p - y)) + penalty @ found
        found -= np.linalg.solve((x.T * (w * p * (1 - p))) @ x + penalty, slope)
    return found


def left_out(given: Rows) -> dict[tuple[str, str, int], float]:
    """Share told right of each set, by weights fitted on the others."""
    right = {}
    for name in sorted({key[0] for key in given}):
        weights = fit({key: part for key, part in given.items() if key[0] != name})
        for key, part in given.items():
            if key[0] == name:
                right[key] = float(np.mean((part @ weights > 0) == (key[1] == "sr")))
    return right


def _row(piece: str) -> tuple[float, ...]:
    text = prose(piece)
    found = features(normalised(text))
    learnt = (scores(found, table)[0] for table in ("south", "native"))
    return (*map(float, learnt), *lexicon.kinds(text), 1.0)


def main() -> None:
    """Write the table, or print the weights."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    group = options.add_mutually_exclusive_group(required=True)
    group.add_argument("--work", type=Path, help="packages are kept here")
    options.add_argument("--texts", type=Path, help="clones of the repositories, for --work")
    group.add_argument("--fit", type=Path, help="clones of the texts to fit the weights on")
    given = options.parse_args()
    if given.work and not given.texts:
        options.error("--work needs --texts")
    if given.fit:
        kept = rows(running(given.fit, held=True))
        for key, right in left_out(kept).items():
            print(*key, f"{right:.3f}")
        found = fit({key: part for key, part in kept.items() if not key[0].startswith("fiction")})
        for name, value in zip(("messages", "native", *lexicon.KINDS, "shift"), found, strict=True):
            print(f"{name}: {value:.2f}")
        return
    sources.fetch(given.work)
    words = kinds(given.work, given.texts)
    write(words)
    print({kind: len(listed) for kind, listed in words.items()}, lexicon.FILE.stat().st_size)


if __name__ == "__main__":
    main()
