"""How many pieces of the check can be told at all: `python -m eval.language_ceiling`.

`eval.language` counts every piece with the label of its set. Some of them no reader could tell, or
would tell otherwise: help pages that were never translated, Croatian school questions under the
Serbian label, encyclopaedias that mix. This sorts the pieces of Croatian and of Serbian in Latin
script by signs that do not look at any detector's answer, and prints for each sort how many there
are and how many of them are told right, then the figure of all pieces and that of what is left.

A piece is of the first sort that fits:

* `english`: words that the English word list has and neither spelling dictionary outnumber those
  that a spelling dictionary has and the English list has not.
* `elsewhere`: half of its words or more stand in runs of five that the same set has under the other
  label as well, word for word (names and numbers of those runs count, so a quoted title does too).
* `other side`: words that are of the other language alone by its spelling dictionary and by what
  is written in news (`eval.language_texts.written`) outnumber those that its own dictionary alone
  has. The Serbian dictionary is ekavian and ijekavian, so that ijekavian Serbian is not of this
  sort.
* `other yat`: more of its words have the old yat of the other side than of its own: ijekavian
  under the Serbian label, ekavian under the Croatian. Such Serbian is Serbian, and is written in
  Bosnia and Montenegro; only what else it says can tell it.
* `no sign`: each of its words is in both spelling dictionaries or in neither. Not undecidable for
  sure: frequency and order of words say something; but no single word does.
* `decidable`: the rest.

The dictionaries and the news are those of which `kernel/language/words.npz` was made as well. They
are not the model's answer, but what they do not know it knows less well: so the last figure is what
is left for the model to get wrong, not what another model would reach. `--misses N` prints that
many pieces told wrong of each language at 250 characters with their sort, to be read.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eval import language_sources as sources
from eval.language import LENGTHS, Texts, ours, sampled, sets
from eval.language_dictionaries import has, spelling, yat
from eval.language_texts import written

DECIDABLE = "decidable"
SORTS = ("english", "elsewhere", "other side", "other yat", "no sign", DECIDABLE)
VARIANTS = ("hr", "sr-Latn", "sr-Latn*")
_OTHER = {"hr": ("sr-Latn", "sr-Latn*"), "sr-Latn": ("hr",), "sr-Latn*": ("hr",)}
_RUN = 5
_WORD = re.compile(r"[^\W\d_]+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(_RUN)), strict=False)


@dataclass(frozen=True)
class Signs:
    """Words of the lists: of English alone, of the others and not of English; by language, those
    that its spelling dictionary has alone, those of them that news have alone as well, and those
    with old yat as the language writes it."""

    english: frozenset[str]
    slavic: frozenset[str]
    alone: dict[str, frozenset[str]]
    used: dict[str, frozenset[str]]
    yat: dict[str, frozenset[str]]


def signs(work: Path, clones: Path, words: Iterable[str]) -> Signs:
    """What the lists say of `words`; packages and clones as in `eval.train_language`."""
    read = {code: spelling(work, code) for code in ("hr", "sr")}
    forms = {code: {f for entry in read[code] for f in entry.forms} for code in read}
    ijekavian, ekavian = yat(read["sr"])
    listed = set(sources.word_list(work, "en", sources.catalogues(work)))
    known = [(w, has(forms["hr"], w), has(forms["sr"], w)) for w in set(words)]
    alone = {
        "hr": frozenset(w for w, hr, sr in known if hr and not sr),
        "sr": frozenset(w for w, hr, sr in known if sr and not hr),
    }
    news = {code: written(clones, code).keys() for code in alone}
    return Signs(
        frozenset(w for w, hr, sr in known if w in listed and not (hr or sr)),
        frozenset(w for w, hr, sr in known if w not in listed and (hr or sr)),
        alone,
        {
            "hr": alone["hr"] & (news["hr"] - news["sr"]),
            "sr": alone["sr"] & (news["sr"] - news["hr"]),
        },
        {"hr": frozenset(ijekavian), "sr": frozenset(ekavian - forms["hr"])},
    )


def shared(variants: Texts, variant: str) -> set[tuple[str, ...]]:
    """Runs of five words that a set has under the other label."""
    others = [text for other in _OTHER[variant] for text in variants.get(other, ())]
    return {run for text in others for run in _runs(_words(text))}


def sort(piece: str, code: str, lists: Signs, elsewhere: set[tuple[str, ...]]) -> str:
    """The first of `SORTS` that fits a piece that is labelled `code`."""
    words, other = _words(piece), "sr" if code == "hr" else "hr"
    if sum(word in lists.english for word in words) > sum(w in lists.slavic for w in words):
        return "english"
    met = {at + n for at, run in enumerate(_runs(words)) if run in elsewhere for n in range(_RUN)}
    if met and 2 * len(met) >= len(words):
        return "elsewhere"
    alone = {c: sum(word in lists.alone[c] for word in words) for c in (code, other)}
    if sum(word in lists.used[other] for word in words) > alone[code]:
        return "other side"
    old = {c: sum(word in lists.yat[c] for word in words) for c in (code, other)}
    if old[other] > old[code]:
        return "other yat"
    if not any(alone.values()) and not any(old.values()):
        return "no sign"
    return DECIDABLE


Counts = dict[tuple[str, str], Counter[tuple[str, bool]]]
"""Variant and set → how many pieces of a sort were told right, and wrong."""


def counted(
    texts: dict[str, Texts], length: int, seed: int, lists: Signs, detector: Callable[[str], str]
) -> tuple[Counts, dict[str, list[str]]]:
    """How many pieces are of which sort; and, by language, those told wrong, with set and sort."""
    found: Counts = defaultdict(Counter)
    wrong: dict[str, list[str]] = defaultdict(list)
    for name, variant, cut in sampled(texts, length, seed):
        if variant not in VARIANTS:
            continue
        code, elsewhere = variant[:2], shared(texts[name], variant)
        for piece in cut:
            kind, answer = sort(piece, code, lists, elsewhere), detector(piece)
            found[variant, name][kind, answer == code] += 1
            if answer != code:
                wrong[code].append(f"{variant} | {name} | {kind} | {answer} | {piece}")
    return found, wrong


def _rate(counts: Counter[tuple[str, bool]], kinds: Iterable[str]) -> str:
    right = sum(counts[kind, True] for kind in kinds)
    whole = right + sum(counts[kind, False] for kind in kinds)
    return f"{right / whole:.3f} of {whole}" if whole else "–"


def report(found: Counts, length: int) -> None:
    """A table: variants with all their sets, then each set."""
    print(f"\n### {length} characters: share told right, of how many pieces\n")
    print(f"| variant | set | all | {' | '.join(SORTS)} |")
    print("|---|---|---|" + "---|" * len(SORTS))
    whole: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for (variant, _), counts in found.items():
        whole[variant] += counts
    rows = [(variant, "all", whole[variant]) for variant in VARIANTS if variant in whole]
    rows += [(variant, name, found[variant, name]) for variant, name in sorted(found)]
    for variant, name, counts in rows:
        cells = [_rate(counts, SORTS), *(_rate(counts, (kind,)) for kind in SORTS)]
        print(f"| {variant} | {name} | {' | '.join(cells)} |")


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--work", type=Path, required=True, help="packages are kept here")
    options.add_argument("--texts", type=Path, required=True, help="clones of the repositories")
    options.add_argument("--extra", type=Path, help="more texts, as in `eval.language`")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--misses", type=int, default=0, help="to print of each language")
    given = options.parse_args()
    sources.fetch(given.work)
    texts = sets(given.extra)
    asked = [text for named in texts.values() for v in VARIANTS for text in named.get(v, ())]
    lists = signs(given.work, given.texts, (word for text in asked for word in _words(text)))
    for length in LENGTHS:
        found, wrong = counted(texts, length, given.seed, lists, ours)
        report(found, length)
    for lines in wrong.values():
        chosen = random.Random(given.seed).sample(lines, min(given.misses, len(lines)))
        print("\n".join(["", *chosen]))


if __name__ == "__main__":
    main()
