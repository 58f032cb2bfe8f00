"""The scan: what the rules find in a text, and the verdict that follows. Pure functions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from contracts.artifacts import HiddenText
from contracts.events import Finding, Severity, Verdict
from services.scanner.decode import decoded
from services.scanner.detectors import DETECTORS, STRANGE, Quotes, Span, hidden_spans, inside
from services.scanner.normalise import (
    Mapped,
    fold,
    has_strange_characters,
    readings,
    squeezed,
    stems,
)
from services.scanner.ruleset import STEM, Phrase, Rule, Ruleset, Scoring

WINDOW = 32_768
OVERLAP = 2_048
"""Characters that a window reads beyond its end; longer than any phrase."""

BEFORE = 96
"""Characters before a phrase that are read for what it means."""

MAX_HITS = 100
"""Hits of one rule in one text that are looked at; what follows adds nothing to a verdict."""

MAX_FINDINGS = 50
"""Findings that an event lists."""

_UP: dict[Severity, Severity] = {"low": "medium", "medium": "high", "high": "high"}
_DOWN: dict[Severity, Severity] = {"high": "medium", "medium": "low", "low": "low"}
_RANK: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}
_COVERT = {"comment", "invisible-style", "off-page", "zero-size", "background-colour"}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where one rule fires; character offsets into its text, -1 in hidden text."""

    rule: Rule
    severity: Severity
    start: int
    end: int
    softened: bool = False


@dataclass(frozen=True)
class ScanResult:
    """The judgement of a text. Findings come worst first, at most `MAX_FINDINGS` of them."""

    verdict: Verdict
    score: float
    findings: tuple[Finding, ...]


def scan(text: str, hidden: Sequence[HiddenText], title: str, ruleset: Ruleset) -> ScanResult:
    """Judge a document.

    Args:
        text: the Markdown; byte offsets of findings point into its UTF-8 form.
        hidden: what a reader does not see, and the fields of the meta; findings there are at -1.
        title: scanned like hidden text.
        ruleset: the tables.
    """
    hits = list(_body_hits(text, ruleset))
    for item in (HiddenText(kind="metadata", text=title), *hidden):
        covert = item.kind in _COVERT
        for hit in _text_hits(item.text, ruleset, covert=covert):
            hits.append(replace(hit, start=-1, end=-1))
        if covert:
            hits += _addressed(item.text, -1, -1, ruleset)
    hits += _clusters(hits, ruleset)
    return _judge(hits, text, ruleset)


def _body_hits(text: str, ruleset: Ruleset) -> Iterator[Hit]:
    covered = hidden_spans(text)
    for start, end in covered:
        yield from _addressed(text[start:end], start, end, ruleset)
    quotes: Quotes | None = None
    for hit in _text_hits(text, ruleset, covert=False):
        quotes = quotes or Quotes(text)
        yield _in_place(hit, covered, quotes)


def _in_place(hit: Hit, covered: Sequence[Span], quotes: Quotes) -> Hit:
    """The hit, worse where the text is hidden, milder where it is a quotation."""
    if hit.rule.kind in ("unicode", "spam"):
        return hit
    quoted = quotes.holds(hit.start, hit.end)
    if inside(covered, hit.start, hit.end) and not quoted:
        return replace(hit, severity=_UP[hit.severity])
    if quoted and not hit.softened:
        return replace(hit, severity=_DOWN[hit.severity], softened=True)
    return hit


def _addressed(text: str, start: int, end: int, ruleset: Ruleset) -> list[Hit]:
    """Hidden text that speaks of models or prompts speaks to one."""
    rule = ruleset.rules["hidden.speaks-to-a-model"]
    expression = re.compile(rule.regex or "")
    if len(text) < 400_000 and expression.search(fold(text).text):
        return [Hit(rule, rule.severity, start, end)]
    return []


def _text_hits(text: str, ruleset: Ruleset, *, covert: bool) -> Iterator[Hit]:
    counts: dict[str, int] = {}
    for hit in _all_hits(text, ruleset):
        seen = counts[hit.rule.id] = counts.get(hit.rule.id, 0) + 1
        if seen <= MAX_HITS:
            yield replace(hit, severity=_UP[hit.severity]) if covert else hit


def _all_hits(text: str, ruleset: Ruleset) -> Iterator[Hit]:
    strange = has_strange_characters(text)
    for rule in ruleset.rules.values():
        if rule.detector and (strange or rule.detector not in STRANGE):
            yield from (Hit(rule, rule.severity, *span) for span in DETECTORS[rule.detector](text))
    yield from _windows(text, ruleset)
    for passage in decoded(text):
        inner = min(_windows(passage.text, ruleset), key=lambda h: _RANK[h.severity], default=None)
        if inner is None:
            continue
        if passage.hiding:
            rule = ruleset.rules["encoded.instruction"]
            yield Hit(rule, rule.severity, passage.start, passage.end)
        severity = _UP[inner.severity] if passage.hiding else inner.severity
        yield replace(inner, severity=severity, start=passage.start, end=passage.end)


def _windows(text: str, ruleset: Ruleset) -> Iterator[Hit]:
    """Phrases and expressions in `text`, piece by piece, so that no step takes long."""
    for low in range(0, len(text), WINDOW):
        first = max(0, low - BEFORE)
        raw = text[first : low + WINDOW + OVERLAP]
        source = Mapped(raw, range(first, first + len(raw)))
        view = fold(raw, first)
        seen: set[tuple[str, int]] = set()
        for hit in _window_hits(source, view, ruleset):
            if low <= hit.start < low + WINDOW and (hit.rule.id, hit.start) not in seen:
                seen.add((hit.rule.id, hit.start))
                yield hit


def _window_hits(source: Mapped, view: Mapped, ruleset: Ruleset) -> Iterator[Hit]:
    words = stems(view.text)
    yield from _phrases(view, words, ruleset)
    yield from _expressions(view, ruleset)
    for reading in readings(source, view, words):
        yield from _phrases(reading, stems(reading.text), ruleset)
    for word in squeezed(view, words):
        yield from _squeezed(word, ruleset)


def _phrases(view: Mapped, words: frozenset[str], ruleset: Ruleset) -> Iterator[Hit]:
    tried: set[int] = set()
    for stem in words & ruleset.phrases.keys():
        for phrase in ruleset.phrases[stem]:
            if id(phrase) not in tried and not any(words.isdisjoint(n) for n in phrase.needs):
                tried.add(id(phrase))
                yield from _matches(phrase, view, words, ruleset)


def _matches(
    phrase: Phrase, view: Mapped, words: frozenset[str], ruleset: Ruleset
) -> Iterator[Hit]:
    hits = 0
    for opening in phrase.openings:
        if opening[:STEM] not in words:
            continue
        for at in _places(view.text, opening, phrase.initial):
            match = phrase.spaced.match(view.text, at)
            if match is not None:
                yield _in_context(phrase.rule, view, match, ruleset)
                hits += 1
                if hits > MAX_HITS:
                    return


def _places(text: str, opening: str, initial: bool) -> Iterator[int]:
    """Where a word begins with `opening`, at the beginning of a sentence if it must."""
    at = text.find(opening)
    while at >= 0:
        before = text[max(0, at - 8) : at]
        if not (before[-1:].isalnum() or (initial and before.rstrip(" *_")[-1:].isalnum())):
            yield at
        at = text.find(opening, at + 1)


def _in_context(rule: Rule, view: Mapped, match: re.Match[str], ruleset: Ruleset) -> Hit:
    """A hit, milder when the words before it deny it, report it or make it depend on something."""
    hit = Hit(rule, rule.severity, *view.span(*match.span()))
    before = view.text[max(0, match.start() - BEFORE) : match.start()]
    said = ruleset.contexts
    if said.negated.search(before):
        return replace(hit, severity="low", softened=True)
    depends = said.conditional.search(before) and not said.addressed.search(before)
    if depends or said.reported.search(before):
        return replace(hit, severity=_DOWN[rule.severity], softened=True)
    return hit


def _expressions(view: Mapped, ruleset: Ruleset) -> Iterator[Hit]:
    for rule, expression in ruleset.expressions:
        if rule.kind != "hidden" and any(anchor in view.text for anchor in rule.anchors):
            for match in expression.finditer(view.text):
                yield Hit(rule, rule.severity, *view.span(*match.span()))


def _squeezed(view: Mapped, ruleset: Ruleset) -> Iterator[Hit]:
    for phrases in ruleset.phrases.values():
        for phrase in phrases:
            if phrase.rule.kind == "override" and phrase.rule.severity != "low":
                match = phrase.squeezed.search(view.text)
                if match is not None:
                    yield Hit(phrase.rule, phrase.rule.severity, *view.span(*match.span()))


def _clusters(hits: Sequence[Hit], ruleset: Ruleset) -> list[Hit]:
    """Different mild signs close together, none of them quoted or denied, add up to one more."""
    rule = ruleset.rules["override.several-signs"]
    mild = sorted(
        (h for h in hits if h.severity == "low" and not h.softened and h.rule.kind in _SPOKEN),
        key=lambda h: h.start,
    )
    near = ruleset.scoring.near
    return [
        Hit(rule, rule.severity, a.start, b.end)
        for a, b in zip(mild, mild[1:], strict=False)
        if a.rule.family != b.rule.family and 0 <= b.start - a.end <= near and a.start >= 0
    ]


_SPOKEN = {"override", "role-play", "tool-bait", "exfiltration"}


def _judge(hits: Sequence[Hit], text: str, ruleset: Ruleset) -> ScanResult:
    score = _score(hits, ruleset.scoring)
    severities = {h.severity for h in hits if h.rule.kind != "spam"}
    verdict: Verdict = "clean"
    if "high" in severities or score >= ruleset.scoring.block:
        verdict = "block"
    elif "medium" in severities or score >= ruleset.scoring.quarantine:
        verdict = "quarantine"
    return ScanResult(verdict, round(score, 4), _findings(hits, text))


def _score(hits: Sequence[Hit], scoring: Scoring) -> float:
    """0 to 1: how unlikely it is that all signs are harmless; each family counts by its worst hit.

    Quoted signs and spam together stay below the threshold of a block.
    """
    hard: dict[str, float] = {}
    soft: dict[str, float] = {}
    for hit in hits:
        weight = scoring.weights[hit.severity]
        if hit.rule.kind == "spam":
            weight = scoring.spam_weight
        elif hit.softened and hit.severity == "low":
            weight = scoring.quoted_weight
        side = soft if hit.softened or hit.rule.kind == "spam" else hard
        side[hit.rule.family] = max(weight, side.get(hit.rule.family, 0.0))
    certain, doubtful = _any_of(hard.values()), _any_of(soft.values())
    return max(certain, min(_any_of((certain, doubtful)), scoring.block - 0.01))


def _any_of(weights: Iterator[float] | Sequence[float] | object) -> float:
    harmless = 1.0
    for weight in weights:  # type: ignore[attr-defined]
        harmless *= 1 - weight
    return 1 - harmless


def _findings(hits: Sequence[Hit], text: str) -> tuple[Finding, ...]:
    """Findings with byte offsets, worst first; what is too much is counted on its rule's first."""
    ranked = sorted(hits, key=lambda h: (_RANK[h.severity], h.start, h.end, h.rule.id))
    ranked = list(dict.fromkeys(ranked))
    firsts = {(h.rule.id, h.severity): h for h in reversed(ranked)}
    kept = sorted(firsts.values(), key=ranked.index)[:MAX_FINDINGS]
    kept += [h for h in ranked if h not in kept][: MAX_FINDINGS - len(kept)]
    offsets = _byte_offsets(text, {p for h in kept for p in (h.start, h.end) if p >= 0})
    dropped = [(h.rule.id, h.severity) for h in ranked if h not in kept]
    return tuple(
        Finding(
            rule=h.rule.id,
            severity=h.severity,
            byte_start=offsets.get(h.start, -1),
            byte_end=offsets.get(h.end, -1),
            count=1 + (dropped.count(key) if firsts[key := (h.rule.id, h.severity)] is h else 0),
        )
        for h in sorted(kept, key=ranked.index)
    )


def _byte_offsets(text: str, characters: set[int]) -> dict[int, int]:
    """UTF-8 offset of each character offset, in one pass over the text."""
    offsets: dict[int, int] = {}
    at = total = 0
    for position in sorted(characters):
        total += len(text[at:position].encode("utf-8", "surrogatepass"))
        offsets[position], at = total, position
    return offsets
