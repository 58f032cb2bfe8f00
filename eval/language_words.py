"""Make the table of words that tell Croatian from Serbian: `python -m eval.language_words`.

`--work DIR` (that of `eval.train_language`, fetched when it is not there) writes
`kernel/language/words.npz`; ten minutes at first, one when `frequencies-*.json` are in DIR.
`--fit DIR` instead prints the weights fitted on the texts that are held apart for that (see
`eval/language_texts.py`; DIR has the clones), and how often each set is told right by weights
fitted on the other sets. The novels are only told of: their Croatian is a century old.

Every form of the spelling dictionaries `hunspell-hr` and `hunspell-sr` is made by their affix
rules. Kept are forms that are also in the word lists inside Tesseract's models and whose frequency
in news and web text points the same way (twice as frequent or more): so names, foreign words and
gaps of a dictionary drop out. The Serbian dictionary is ekavian and ijekavian: a lemma with `je` or
`ije` that has a counterpart with `e` of the same inflection is a pair of old yat, and tells
Croatian from the Serbian that is written most, the other one Serbian. Shipped are hashes.
"""

import argparse
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eval import language_sources as sources
from eval.language import pieces
from eval.language_texts import running
from eval.train_language import MASK, word_frequencies
from kernel.language import lexicon, prose
from kernel.language.features import features, normalised
from kernel.language.model import scores

_MASKED = re.compile(rf"{MASK}|kosov|crnogor|makedon")
_LEAST = 1e-6
"""Added to a frequency, so that a rare word says little."""
_TWICE, _MUCH = 0.7, 1.5
"""Natural logarithm of the ratio of frequencies: of a word that one dictionary has, of one that
both have."""
_FOREIGN = 2e-6


class Rule(NamedTuple):
    """An affix: what is taken off, what is put on, what the word must look like."""

    off: str
    on: str
    condition: re.Pattern[str] | None


class Entry(NamedTuple):
    """A lemma of a dictionary; `flags`: the names of its rules; `forms`: all that they make."""

    lemma: str
    flags: frozenset[str]
    forms: frozenset[str]


def entries(affixes: Path) -> Iterator[Entry]:
    """Lower-case lemmas of a hunspell dictionary with their forms (one suffix, one prefix)."""
    kind, aliases, suffixes, prefixes = _rules(affixes)
    lines = affixes.with_suffix(".dic").read_text("utf-8").splitlines()[1:]
    for line in lines:
        lemma, _, named = (line.split() or [""])[0].partition("/")
        if not (lemma.isalpha() and lemma.islower()):
            continue
        named = aliases[int(named) - 1] if aliases and named.isdigit() else named
        flags = frozenset(_flags(named, kind))
        forms = {lemma}
        for flag in flags:
            for rule in suffixes[flag]:
                if lemma.endswith(rule.off) and (
                    not rule.condition or rule.condition.search(lemma)
                ):
                    forms.add(lemma[: len(lemma) - len(rule.off)] + rule.on)
        for flag in flags:
            for rule in prefixes[flag]:
                forms |= {
                    rule.on + form[len(rule.off) :]
                    for form in tuple(forms)
                    if form.startswith(rule.off)
                    and (not rule.condition or rule.condition.match(form))
                }
        yield Entry(lemma, flags, frozenset(filter(str.isalpha, forms)))


def _flags(named: str, kind: str) -> list[str]:
    if kind == "num":
        return named.split(",") if named else []
    size = 2 if kind == "long" else 1
    return [named[at : at + size] for at in range(0, len(named), size)]


def _rules(path: Path) -> tuple[str, list[str], Any, Any]:
    """Form of flags, aliases of sets of flags, and the rules of each flag."""
    kind, aliases = "short", []
    suffixes: dict[str, list[Rule]] = defaultdict(list)
    prefixes: dict[str, list[Rule]] = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        match line.partition("#")[0].split():
            case ["FLAG", kind]:
                pass
            case ["AF", flags]:
                aliases.append(flags)
            case ["SFX" | "PFX", _, "Y" | "N", count] if count.isdigit():
                pass
            case ["SFX", flag, off, on, *rest]:
                suffixes[flag].append(_rule(off, on, rest, "(?:{})$"))
            case ["PFX", flag, off, on, *rest]:
                prefixes[flag].append(_rule(off, on, rest, "(?:{})"))
    return kind, aliases[1:], suffixes, prefixes


def _rule(off: str, on: str, rest: list[str], anchored: str) -> Rule:
    on, off = on.partition("/")[0].replace("0", ""), off.replace("0", "")
    condition = rest[0] if rest and rest[0] != "." else ""
    return Rule(off, on, re.compile(anchored.format(condition)) if condition else None)


def _ekavian(lemma: str) -> set[str]:
    """What a lemma may be in ekavian: one yat replaced, or all of them."""
    one = {lemma[: m.start()] + "e" + lemma[m.end() :] for m in re.finditer("ije|je", lemma)}
    long = lemma.replace("ije", "e")
    return (one | {long, long.replace("je", "e")}) - {lemma}


def yat(serbian: list[Entry]) -> tuple[set[str], set[str]]:
    """Forms that only lemmas with yat make: ijekavian, ekavian."""
    flags: dict[str, list[frozenset[str]]] = defaultdict(list)
    for entry in serbian:
        flags[entry.lemma].append(entry.flags)
    pairs = [
        (lemma, other)
        for lemma in flags
        if "je" in lemma
        for other in _ekavian(lemma)
        if any(named in flags[lemma] for named in flags.get(other, ()))
    ]
    forms = []
    for lemmas in ({one for one, _ in pairs}, {other for _, other in pairs}):
        inside = {form for e in serbian if e.lemma in lemmas for form in e.forms}
        outside = {form for e in serbian if e.lemma not in lemmas for form in e.forms}
        forms.append(inside - outside)
    return forms[0], forms[1]


def _has(dictionary: set[str], word: str) -> bool:
    """Negated and superlative forms are not in every dictionary."""
    return (
        word in dictionary
        or (word.startswith("ne") and len(word) > 5 and word[2:] in dictionary)
        or (word.startswith("naj") and len(word) > 6 and word[3:] in dictionary)
    )


def kinds(work: Path) -> dict[str, set[str]]:
    """Kind (see `kernel.language.lexicon.KINDS`) → words."""
    read = {}
    for code, (package, name) in sources.DICTIONARIES.items():
        affixes = next((work / "tree").glob(f"{package}*/usr/share/hunspell/{name}.aff"))
        read[code] = list(entries(affixes))
    croatian, serbian = ({f for e in read[code] for f in e.forms} for code in ("hr", "sr"))
    ijekavian, ekavian = yat(read["sr"])
    catalogues = sources.catalogues(work)
    used = {code: word_frequencies(work, code, catalogues) for code in ("hr", "sr", "en", "de")}
    used["sr"] = {sources.latin(word): share for word, share in used["sr"].items()}
    foreign = {w for code in ("en", "de") for w, share in used[code].items() if share > _FOREIGN}
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
    mine, theirs = _has(croatian, word), _has(serbian, word)
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
    group.add_argument("--fit", type=Path, help="clones of the texts to fit the weights on")
    given = options.parse_args()
    if given.fit:
        kept = rows(running(given.fit, held=True))
        for key, right in left_out(kept).items():
            print(*key, f"{right:.3f}")
        found = fit({key: part for key, part in kept.items() if not key[0].startswith("fiction")})
        for name, value in zip(("messages", "native", *lexicon.KINDS, "shift"), found, strict=True):
            print(f"{name}: {value:.2f}")
        return
    sources.fetch(given.work)
    words = kinds(given.work)
    write(words)
    print({kind: len(listed) for kind, listed in words.items()}, lexicon.FILE.stat().st_size)


if __name__ == "__main__":
    main()
