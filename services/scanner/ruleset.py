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
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from contracts.events import Severity
from services.scanner.lexicon import STEM, Lexicon
from services.scanner.normalise import fold
from services.scanner.readings import signals

Kind = Literal[
    "override", "role-play", "tool-bait", "exfiltration",
    "hidden", "unicode", "encoded", "spam", "learned",
]  # fmt: skip
FOLDER = Path(__file__).parent / "rules"
COMMON_WORDS = Path(__file__).with_name("common_words.txt")

_WORD = r"[^\W_]"
_GAP = r"(?:[\s_*~`\"',\-|/>#\\()\[\]{}=+]|\.(?=[^\W_])|<[^<>]{0,40}>){1,12}+"
_DENIAL = r"(?:nicht|niemals|keinesfalls)(?![^\W_])"


class Rule(BaseModel):
    """One row of a table: what to look for, how bad it is, and why.

    `patterns` are phrases, `regex` reads the folded text within `around` characters of one of its
    `anchors`, `detector` names a function of `detectors.py`; a rule with none of them is raised by
    the engine. `marks`: an anchor counts only where one of these is among the three characters
    before it, if any are named.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: str = Field(pattern=r"^[a-z0-9.-]+$")
    kind: Kind
    severity: Severity
    language: str = "any"
    why: str
    patterns: tuple[str, ...] = ()
    regex: str | None = None
    anchors: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()
    around: int = 400
    detector: str | None = None
    positive: str
    negative: str

    @property
    def family(self) -> str:
        """The id without its language: the same sign in two languages counts once."""
        return self.id.replace(f".{self.language}.", ".")


class Scoring(BaseModel):
    """Weights and thresholds of the verdict."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    block: float
    quarantine: float
    weights: dict[Severity, float]
    quoted_weight: float
    spam_weight: float
    near: int
    together: int


@dataclass(frozen=True, eq=False)
class Phrase:
    """A phrase; it is tried only where one of its first words stands before an anchor.

    See `lexicon.Anchored`. Its expressions are compiled when they are first tried: most never are.
    """

    rule: Rule
    initial: bool
    anchors: dict[str, tuple[str, ...]]
    reach: int
    followers: dict[str, frozenset[str]]
    signs: tuple["Sign", ...] = field(repr=False)

    @cached_property
    def spaced(self) -> re.Pattern[str]:
        """It in a text."""
        return re.compile(rf"(?<!{_WORD}){_spaced(self.signs)}")

    @cached_property
    def squeezed(self) -> re.Pattern[str]:
        """It in a text without gaps between words."""
        return re.compile(_squeezed(self.signs))


@dataclass(frozen=True, slots=True)
class Contexts:
    """What stands right before a phrase and makes it something else than an order."""

    negated: re.Pattern[str]
    reported: re.Pattern[str]
    conditional: re.Pattern[str]
    addressed: re.Pattern[str]


@dataclass(frozen=True)
class Ruleset:
    """All rules. `version` changes with every byte of the tables and of what reads them."""

    version: str
    rules: dict[str, Rule]
    scoring: Scoring
    contexts: Contexts
    phrases: Lexicon[Phrase] = field(repr=False)
    """With the strings of `expressions` by number, and those of `readings.signals()`."""

    hidden_phrases: Lexicon[Phrase] = field(repr=False)
    """Those that count only where a reader does not see them."""

    detectors: tuple[Rule, ...] = field(repr=False)
    """Those with a function of their own."""

    expressions: tuple[tuple[Rule, re.Pattern[str]], ...] = field(repr=False)
    """Those of visible text; one is tried within `around` characters of its `anchors`."""

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
    tables = {f.stem: tomllib.loads(f.read_text("utf-8")) for f in files}
    scoring = Scoring.model_validate(tables.pop("scoring"))
    contexts = _contexts(tables.pop("contexts"))
    rules: dict[str, Rule] = {}
    seen: list[Phrase] = []
    unseen: list[Phrase] = []
    vocabulary: set[str] = set()
    for table in tables.values():
        for rule, words in _rules(table):
            if rule.id in rules:
                raise ValueError(f"two rules are called {rule.id}")
            rules[rule.id] = rule
            compiled = [compile_phrase(rule, p, words) for p in _patterns(rule)]
            vocabulary.update(w for p in _patterns(rule) for w in _said(p, words))
            (unseen if rule.kind == "hidden" else seen).extend(compiled)
    expressions = [r for r in rules.values() if r.regex and r.kind != "hidden"]
    return Ruleset(
        version=f"rules-{_digest(files)[:8]}",
        rules=rules,
        scoring=scoring,
        contexts=contexts,
        phrases=Lexicon(
            seen, {i: r.anchors for i, r in enumerate(expressions)}, signals(), vocabulary
        ),
        hidden_phrases=Lexicon(unseen),
        detectors=tuple(r for r in rules.values() if r.detector),
        expressions=tuple((r, re.compile(r.regex or "", re.M)) for r in expressions),
    )


ENGINE = (
    "common_words.txt", "decode.py", "detectors.py", "domain.py", "identifiers.py", "judge.py",
    "lexicon.py", "matching.py", "normalise.py", "readings.py", "ruleset.py", "texts.py",
)  # fmt: skip
"""Files of this package, besides the tables, that decide what is found; the learned layer's too."""


def _digest(tables: Iterable[Path]) -> str:
    """Changes with all that decides: tables, words, code, and Python's knowledge of Unicode.

    A wheel holds the same files, so it names the same version as the sources it was made from.
    """
    here = Path(__file__).parent
    sources = [*tables, *(here / name for name in ENGINE), *sorted(here.glob("learned/*.py"))]
    whole = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in sources:
        whole.update(file.name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()


@cache
def reasons() -> dict[str, str]:
    """The sentence why of each rule by its id: the tables are read, and nothing is compiled."""
    tables = (tomllib.loads(f.read_text("utf-8")) for f in sorted(FOLDER.glob("*.toml")))
    rows = (row for table in tables for row in table.get("rule", ()))
    return {single["id"]: str(single["why"]) for row in rows for single in _by_language(row)}


Words = dict[str, tuple[str, ...]]


@cache
def word_lists() -> dict[str, Words]:
    """By the id of a rule: the word lists that its patterns may name."""
    names = ("scoring", "contexts")
    files = (f for f in sorted(FOLDER.glob("*.toml")) if f.stem not in names)
    tables = (tomllib.loads(f.read_text("utf-8")) for f in files)
    return {rule.id: words for table in tables for rule, words in _rules(table)}


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
    signs = tuple(_signs(pattern, words))
    parts = _parts(signs)
    first = parts[0] if parts else None
    if pattern[0] in "~:," or first is None or first.before or _is_short(first.entries):
        raise ValueError(f"{rule.id}: a pattern begins with a word: {pattern}")
    anchor = min(parts, key=lambda part: part.commonness)
    return Phrase(
        rule,
        initial,
        anchors=_pairs(anchor, first),
        reach=anchor.before + max(_length(entry) for entry in anchor.entries),
        followers=_followers(signs),
        signs=signs,
    )


def _said(pattern: str, words: Words) -> Iterator[str]:
    """All words of a pattern, those that may be missing too."""
    for sign in pattern.removeprefix("^").split():
        if sign[0] not in "~:,":
            for entry in _entries(sign, words)[0]:
                yield from _tokens(entry)


_LONGEST_GAP = 12
_TOKENS = re.compile(rf"{_WORD}+\*?")


def _tokens(entry: str) -> list[str]:
    return _TOKENS.findall(entry)


def _length(entry: str) -> int:
    """Characters that an entry takes in a text at most, with the gap behind it."""
    return sum(len(t) + _LONGEST_GAP + 14 * (t[-1] == "*") for t in _tokens(entry))


@dataclass(frozen=True, slots=True)
class Part:
    """One obligatory part of a pattern: its entries, and characters before it at most."""

    entries: tuple[str, ...]
    before: int

    @property
    def anchors(self) -> tuple[str, ...]:
        """The rarest word of each entry."""
        return tuple(dict.fromkeys(map(_rarest, self.entries)))

    @property
    def commonness(self) -> float:
        """How often one of its anchors may stand among the words of a text, roughly."""
        return sum(map(_commonness, self.anchors))


def _pairs(anchor: Part, first: Part) -> dict[str, tuple[str, ...]]:
    """The words of the anchor, and the first words that the phrase may have with each."""
    if anchor is not first:
        return dict.fromkeys(anchor.anchors, tuple(dict.fromkeys(map(_first, first.entries))))
    pairs: dict[str, list[str]] = {}
    for entry in first.entries:
        pairs.setdefault(_rarest(entry), []).append(_first(entry))
    return {word: tuple(dict.fromkeys(openings)) for word, openings in pairs.items()}


def _followers(signs: Sequence["Sign"]) -> dict[str, frozenset[str]]:
    """Of the first words after which only some words can stand: these words."""
    later = _next_words(signs[1:])
    found: dict[str, list[str] | None] = {}
    for entry in signs[0].entries:
        word, *others = _tokens(entry)
        known, wanted = found.get(word, []), others[:1] or later
        found[word] = None if known is None or wanted is None else known + wanted
    return {word: frozenset(wanted) for word, wanted in found.items() if wanted is not None}


def _next_words(signs: Iterable["Sign"]) -> list[str] | None:
    """The words that the rest of a pattern may begin with; None: any, or none at all."""
    words: list[str] = []
    for sign in signs:
        if sign.mark:
            return None
        words += map(_first, sign.entries)
        if not sign.optional:
            return words
    return None


def _first(entry: str) -> str:
    return _tokens(entry)[0]


def _rarest(entry: str) -> str:
    return min(_tokens(entry), key=_commonness)


def _commonness(token: str) -> float:
    for words, share in zip(_common_words(), (0.05, 0.02, 0.003, 0.001), strict=True):
        if token.rstrip("*") in words:
            return share
    if token[-1] == "*" and _letters(token) < STEM:
        return 0.004
    if len(token) == 1:
        return 0.02
    return 0.0004 * 0.7 ** max(_letters(token) - STEM, 0)


@cache
def _common_words() -> tuple[frozenset[str], ...]:
    """The groups of `common_words.txt`: words that stand in every text, the commonest first."""
    groups = COMMON_WORDS.read_text("utf-8").split("\n# ")[1:]
    return tuple(frozenset(group.partition("\n")[2].split()) for group in groups)


def _letters(token: str) -> int:
    return len(token.rstrip("*"))


def _is_short(entries: tuple[str, ...]) -> bool:
    """Is there a stem among them that is too short to be looked up?"""
    return any(re.match(rf"\w{{0,{STEM - 1}}}\*", entry) for entry in entries)


class Sign(NamedTuple):
    """One sign of a pattern: a mark, a number of other words, or one of some entries."""

    mark: str
    most: int = 0
    entries: tuple[str, ...] = ()
    optional: bool = False


def _signs(pattern: str, words: Words) -> Iterator[Sign]:
    for sign in pattern.split():
        if sign in ":,":
            yield Sign(sign)
        elif sign[0] == "~":
            yield Sign("~", most=int(sign[1:]))
        else:
            entries, optional = _entries(sign, words)
            yield Sign("", entries=entries, optional=optional)


def _parts(signs: Iterable[Sign]) -> list[Part]:
    """The obligatory parts of a pattern."""
    parts: list[Part] = []
    before = 0
    for sign in signs:
        if sign.mark == "~":
            before += sign.most * (24 + _LONGEST_GAP)
        elif not sign.mark:
            parts += [] if sign.optional else [Part(sign.entries, before)]
            before += max(map(_length, sign.entries))
    return parts


def _spaced(signs: Iterable[Sign]) -> str:
    """A pattern as a regular expression, with gaps between its words."""
    said = ""
    for sign in signs:
        if sign.mark == ":":
            said = said.removesuffix(_GAP) + r"[ *_]{0,4}:"
        elif sign.mark == ",":
            said = said.removesuffix(_GAP) + rf"[ *_\"']{{0,4}}(?:[,.!;:\n-](?!{_WORD})|\Z)"
        elif sign.mark == "~":
            said += rf"(?:(?!{_DENIAL}){_WORD}{{1,24}}+{_GAP}){{0,{sign.most}}}?"
        else:
            wide = _wide(sign.entries) + _GAP
            said += f"(?:{wide})?" if sign.optional else wide
    return said.removesuffix(_GAP)


def _squeezed(signs: Iterable[Sign]) -> str:
    """The same without gaps."""
    said = ""
    for sign in signs:
        if sign.mark == ":":
            said += ":?"
        elif sign.mark == "~":
            said += rf"{_WORD}{{0,{sign.most * 9}}}?"
        elif not sign.mark:
            said += _tight(sign.entries) + ("?" if sign.optional else "")
    return said


def _entries(token: str, words: Words) -> tuple[tuple[str, ...], bool]:
    name = token.removesuffix("?")
    if not name.startswith("{"):
        return (_folded(name),), name != token
    if name[1:-1] not in words:
        raise ValueError(f"no word list {name}")
    return tuple(map(_folded, words[name[1:-1]])), name != token


@cache
def _folded(entry: str) -> str:
    return fold(entry).text


def _wide(entries: tuple[str, ...]) -> str:
    """A regular expression for any of the entries, with gaps between words."""
    ordered = sorted(entries, key=len, reverse=True)
    return "(?:" + "|".join(_GAP.join(map(_word, e.split())) for e in ordered) + ")"


def _tight(entries: tuple[str, ...]) -> str:
    """The same without gaps."""
    tight = "|".join(
        re.escape(e.replace(" ", "")).replace(r"\*", rf"{_WORD}{{0,6}}?")
        for e in sorted(entries, key=len, reverse=True)
    )
    return f"(?:{tight})"


def _word(word: str) -> str:
    if word.endswith("*"):
        return re.escape(word[:-1]) + rf"{_WORD}{{0,14}}+"
    return re.escape(word) + rf"(?!{_WORD})"


def _contexts(table: dict[str, Any]) -> Contexts:
    words = _vocabulary(table["words"], "any")

    def before(name: str) -> re.Pattern[str]:
        wide = "|".join(_spaced(_signs(pattern, words)) for pattern in table[name])
        return re.compile(rf"(?<!{_WORD})(?:{wide})(?:{_GAP})?\Z")

    return Contexts(*(before(name) for name in ("negated", "reported", "conditional", "addressed")))
