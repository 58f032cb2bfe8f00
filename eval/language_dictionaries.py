"""Spelling dictionaries of Croatian and Serbian: all forms of their words, and pairs of old yat."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eval.language_sources import DICTIONARIES


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


def ekavian(lemma: str) -> set[str]:
    """What a lemma may be in ekavian: one yat replaced, or all of them."""
    one = {lemma[: m.start()] + "e" + lemma[m.end() :] for m in re.finditer("ije|je", lemma)}
    long = lemma.replace("ije", "e")
    return (one | {long, long.replace("je", "e")}) - {lemma}


def yat(serbian: list[Entry]) -> tuple[set[str], set[str]]:
    """Forms that only lemmas with yat make: ijekavian, ekavian.

    A lemma with `je` or `ije` that has a counterpart with `e` of the same inflection is a pair.
    """
    flags: dict[str, list[frozenset[str]]] = defaultdict(list)
    for entry in serbian:
        flags[entry.lemma].append(entry.flags)
    pairs = [
        (lemma, other)
        for lemma in flags
        if "je" in lemma
        for other in ekavian(lemma)
        if any(named in flags[lemma] for named in flags.get(other, ()))
    ]
    forms = []
    for lemmas in ({one for one, _ in pairs}, {other for _, other in pairs}):
        inside = {form for e in serbian if e.lemma in lemmas for form in e.forms}
        outside = {form for e in serbian if e.lemma not in lemmas for form in e.forms}
        forms.append(inside - outside)
    return forms[0], forms[1]


def has(dictionary: set[str], word: str) -> bool:
    """Negated and superlative forms are not in every dictionary."""
    return (
        word in dictionary
        or (word.startswith("ne") and len(word) > 5 and word[2:] in dictionary)
        or (word.startswith("naj") and len(word) > 6 and word[3:] in dictionary)
    )


def spelling(work: Path, code: str) -> list[Entry]:
    """The dictionary of a language, unpacked under `work` by `eval.language_sources.fetch`."""
    package, name = DICTIONARIES[code]
    return list(entries(next((work / "tree").glob(f"{package}*/usr/share/hunspell/{name}.aff"))))
