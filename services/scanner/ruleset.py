"""The rule tables in `rules/*.toml`: read, checked and compiled once.

A row with `examples` (language = [positive, negative]) stands for one rule in each of these
languages: the same `patterns` over each language's word lists, and those of its own in `also`.

A phrase pattern is a row of words and signs: `word`, `stem*`, `{group}` (one entry of a word list),
`{group}?` (may be missing), `~3` (up to three other words), `:` (a colon follows directly),
`,` (a mark that ends a clause follows); a leading `^` wants the beginning of a sentence.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from contracts.events import Severity
from services.scanner.normalise import STEM, fold

Kind = Literal[
    "override", "role-play", "tool-bait", "exfiltration",
    "hidden", "unicode", "encoded", "spam", "learned",
]  # fmt: skip
FOLDER = Path(__file__).parent / "rules"

_WORD = r"[^\W_]"
_GAP = r"(?:[\s_*~`\"',\-|/>#\\()\[\]{}=+]|\.(?=[^\W_])|<[^<>]{0,40}>){1,12}+"
_DENIAL = r"(?:nicht|niemals|keinesfalls)(?![^\W_])"


class Rule(BaseModel):
    """One row of a table: what to look for, how bad it is, and why.

    `patterns` are phrases, `regex` reads the folded text (one of `anchors` must be in it),
    `detector` names a function of `detectors.py`; a rule with none of them is raised by the engine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9.-]+$")
    kind: Kind
    severity: Severity
    language: str = "any"
    why: str
    patterns: tuple[str, ...] = ()
    regex: str | None = None
    anchors: tuple[str, ...] = ()
    detector: str | None = None
    positive: str
    negative: str

    @property
    def family(self) -> str:
        """The id without its language: the same sign in two languages counts once."""
        return self.id.replace(f".{self.language}.", ".")


class Scoring(BaseModel):
    """Weights and thresholds of the verdict; `engine` counts changes of the code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: int
    block: float
    quarantine: float
    weights: dict[Severity, float]
    quoted_weight: float
    spam_weight: float
    near: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """A compiled phrase; it is tried only where one of its `openings` stands."""

    rule: Rule
    initial: bool
    openings: tuple[str, ...]
    needs: tuple[frozenset[str], ...]
    """Word beginnings, one set for each obligatory part: a text without them cannot match."""

    spaced: re.Pattern[str]
    squeezed: re.Pattern[str]

    def possible(self, words: frozenset[str]) -> bool:
        """May a text with these stems hold the phrase?"""
        for need in self.needs:  # noqa: SIM110 - the hottest loop of a scan
            if words.isdisjoint(need):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Contexts:
    """What stands right before a phrase and makes it something else than an order."""

    negated: re.Pattern[str]
    reported: re.Pattern[str]
    conditional: re.Pattern[str]
    addressed: re.Pattern[str]


@dataclass(frozen=True)
class Ruleset:
    """All rules, compiled. `version` changes with every byte of the tables."""

    version: str
    rules: dict[str, Rule]
    scoring: Scoring
    contexts: Contexts
    phrases: dict[str, tuple[Phrase, ...]] = field(repr=False)
    """By the beginning of their first word."""

    hidden_phrases: dict[str, tuple[Phrase, ...]] = field(repr=False)
    """Those that count only where a reader does not see them."""

    expressions: tuple[tuple[Rule, re.Pattern[str]], ...] = field(repr=False)

    def severity(self, rule_id: str) -> Severity:
        """What the table says about a rule."""
        return self.rules[rule_id].severity


@cache
def default_ruleset() -> Ruleset:
    """The tables that ship with the scanner."""
    return load(FOLDER)


def load(folder: Path) -> Ruleset:
    """Read and compile the tables of a folder.

    Raises:
        ValueError: a table is malformed, names an unknown word list, or repeats an id.
    """
    files = sorted(folder.glob("*.toml"))
    digest = hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).hexdigest()
    tables = {f.stem: tomllib.loads(f.read_text("utf-8")) for f in files}
    scoring = Scoring.model_validate(tables.pop("scoring"))
    contexts = _contexts(tables.pop("contexts"))
    rules: dict[str, Rule] = {}
    phrases: dict[str, list[Phrase]] = {}
    hidden_phrases: dict[str, list[Phrase]] = {}
    for table in tables.values():
        for rule, words in _rules(table):
            if rule.id in rules:
                raise ValueError(f"two rules are called {rule.id}")
            rules[rule.id] = rule
            table_of = hidden_phrases if rule.kind == "hidden" else phrases
            for phrase in (compile_phrase(rule, p, words) for p in _patterns(rule)):
                for stem in phrase.needs[0]:
                    table_of.setdefault(stem, []).append(phrase)
    return Ruleset(
        version=f"rules-{digest[:8]}",
        rules=rules,
        scoring=scoring,
        contexts=contexts,
        phrases={stem: tuple(found) for stem, found in phrases.items()},
        hidden_phrases={stem: tuple(found) for stem, found in hidden_phrases.items()},
        expressions=tuple((r, re.compile(r.regex, re.M)) for r in rules.values() if r.regex),
    )


@cache
def reasons() -> dict[str, str]:
    """The sentence why of each rule by its id: the tables are read, and nothing is compiled."""
    tables = (tomllib.loads(f.read_text("utf-8")) for f in sorted(FOLDER.glob("*.toml")))
    rows = (row for table in tables for row in table.get("rule", ()))
    return {single["id"]: str(single["why"]) for row in rows for single in _by_language(row)}


Words = dict[str, tuple[str, ...]]


def _rules(table: dict[str, Any]) -> Iterator[tuple[Rule, Words]]:
    for row in table["rule"]:
        for single in _by_language(row):
            rule = Rule.model_validate({"kind": table["kind"], **single})
            yield rule, _vocabulary(table.get("words", {}), rule.language)


def _by_language(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row as it is, or one a language of its `examples`: `a.sign` becomes `a.en.sign`."""
    row = dict(row)
    examples, also = row.pop("examples", None), row.pop("also", {})
    if examples is None:
        yield row
        return
    if spare := set(also) - set(examples):
        raise ValueError(f"{row['id']}: patterns but no examples in {sorted(spare)}")
    family, _, sign = row["id"].rpartition(".")
    for language, (positive, negative) in examples.items():
        yield row | {
            "id": f"{family}.{language}.{sign}",
            "language": language,
            "patterns": [*row.get("patterns", ()), *also.get(language, ())],
            "positive": positive,
            "negative": negative,
        }


def _vocabulary(words: dict[str, dict[str, list[str]]], language: str) -> Words:
    """Word lists of a language, with those of `any`; Serbian lists are read in both scripts."""
    lists = {**words.get("any", {}), **words.get(language, {})}
    if language == "sr":
        return {n: tuple(dict.fromkeys([*e, *map(_serbian_cyrillic, e)])) for n, e in lists.items()}
    return {name: tuple(entries) for name, entries in lists.items()}


def _patterns(rule: Rule) -> Iterator[str]:
    yield from rule.patterns
    if rule.language == "sr":
        for pattern in rule.patterns:
            signs = (t if t[0] in "{~^:," else _serbian_cyrillic(t) for t in pattern.split())
            yield " ".join(signs)


_DIGRAPHS = (("lj", "љ"), ("nj", "њ"), ("dž", "џ"))
_LETTERS = str.maketrans("abvgdđežzijklmnoprstćufhcčš", "абвгдђежзијклмнопрстћуфхцчш")


def _serbian_cyrillic(word: str) -> str:
    for latin, cyrillic in _DIGRAPHS:
        word = word.replace(latin, cyrillic)
    return word.translate(_LETTERS)


def compile_phrase(rule: Rule, pattern: str, words: Words) -> Phrase:
    """Compile a phrase pattern.

    Raises:
        ValueError: it begins with something optional or short, or names an unknown list.
    """
    initial, pattern = pattern[0] == "^", pattern.removeprefix("^").strip()
    spaced, squeezed, parts = _expression(pattern, words)
    if pattern[0] in "~:," or pattern.split()[0].endswith("?") or _is_short(parts[0]):
        raise ValueError(f"{rule.id}: a pattern begins with a word: {pattern}")
    openings = tuple(dict.fromkeys(re.split(r"[ *]", entry)[0] for entry in parts[0]))
    needs = tuple(
        frozenset(entry.replace("*", " ").split()[0][:STEM] for entry in part)
        for part in parts
        if not _is_short(part)
    )
    return Phrase(
        rule, initial, openings, needs, re.compile(rf"(?<!{_WORD}){spaced}"), re.compile(squeezed)
    )


def _is_short(entries: tuple[str, ...]) -> bool:
    """Is there a stem among them that is too short to be looked up?"""
    return any(re.match(rf"\w{{0,{STEM - 1}}}\*", entry) for entry in entries)


def _expression(pattern: str, words: Words) -> tuple[str, str, list[tuple[str, ...]]]:
    """A pattern as two regular expressions, with and without gaps, and its obligatory parts."""
    spaced = squeezed = ""
    parts: list[tuple[str, ...]] = []
    for sign in pattern.split():
        if sign == ":":
            spaced, squeezed = spaced.removesuffix(_GAP) + r"[ *_]{0,4}:", squeezed + ":?"
        elif sign == ",":
            spaced = spaced.removesuffix(_GAP) + rf"[ *_\"']{{0,4}}(?:[,.!;:\n-](?!{_WORD})|\Z)"
        elif sign[0] == "~":
            count = int(sign[1:])
            spaced += rf"(?:(?!{_DENIAL}){_WORD}{{1,24}}+{_GAP}){{0,{count}}}?"
            squeezed += rf"{_WORD}{{0,{count * 9}}}?"
        else:
            entries, optional = _entries(sign, words)
            wide, tight = _alternatives(entries)
            spaced += rf"(?:{wide}{_GAP})?" if optional else wide + _GAP
            squeezed += tight + "?" if optional else tight
            parts += [] if optional else [entries]
    return spaced.removesuffix(_GAP), squeezed, parts


def _entries(token: str, words: Words) -> tuple[tuple[str, ...], bool]:
    name = token.removesuffix("?")
    if not name.startswith("{"):
        return (fold(name).text,), name != token
    if name[1:-1] not in words:
        raise ValueError(f"no word list {name}")
    return tuple(fold(entry).text for entry in words[name[1:-1]]), name != token


def _alternatives(entries: tuple[str, ...]) -> tuple[str, str]:
    """A regular expression for any of the entries: with gaps between words, and without."""
    ordered = sorted(entries, key=len, reverse=True)
    wide = "|".join(_GAP.join(_word(w) for w in e.split()) for e in ordered)
    tight = "|".join(
        re.escape(e.replace(" ", "")).replace(r"\*", rf"{_WORD}{{0,6}}?") for e in ordered
    )
    return f"(?:{wide})", f"(?:{tight})"


def _word(word: str) -> str:
    if word.endswith("*"):
        return re.escape(word[:-1]) + rf"{_WORD}{{0,14}}+"
    return re.escape(word) + rf"(?!{_WORD})"


def _contexts(table: dict[str, Any]) -> Contexts:
    words = _vocabulary(table["words"], "any")

    def before(name: str) -> re.Pattern[str]:
        wide = "|".join(_expression(pattern, words)[0] for pattern in table[name])
        return re.compile(rf"(?<!{_WORD})(?:{wide})(?:{_GAP})?\Z")

    return Contexts(*(before(name) for name in ("negated", "reported", "conditional", "addressed")))
