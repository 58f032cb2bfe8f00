"""The scan: what the rules find in a text, and the verdict that follows. Pure functions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import prod

from contracts.artifacts import HiddenText
from contracts.events import Finding, HiddenKind, Severity, Verdict
from services.scanner.detectors import Quotes, Span, hidden_spans, inside
from services.scanner.matching import MAX_HITS, RANK, UP, Hit, all_hits, said_unseen
from services.scanner.normalise import fold
from services.scanner.ruleset import Ruleset, Scoring

MAX_FINDINGS = 50
"""Findings that an event lists."""

_DOWN: dict[Severity, Severity] = {"high": "medium", "medium": "low", "low": "low"}
_COVERT = {"comment", "invisible-style", "off-page", "zero-size", "background-colour"}


@dataclass(frozen=True)
class ScanResult:
    """The judgement of a text. Findings come worst first, at most `MAX_FINDINGS` of them."""

    verdict: Verdict
    score: float
    findings: tuple[Finding, ...]


LearnedSpan = tuple[int | None, int, int]
"""Number of the hidden text (None: the text itself), first and last character of a passage."""


def scan(
    text: str,
    hidden: Sequence[HiddenText],
    ruleset: Ruleset,
    learned: Sequence[LearnedSpan] = (),
) -> ScanResult:
    """Judge a document.

    Args:
        text: the Markdown; byte offsets of findings point into its UTF-8 form.
        hidden: what a reader does not see, and the meta; as `texts.hidden_of` gives it.
        ruleset: the tables.
        learned: passages that the learned layer takes for orders; they never block.
    """
    hits = list(_body_hits(text, ruleset))
    for number, item in enumerate(hidden):
        hits += (replace(hit, hidden=number) for hit in _hidden_hits(item, ruleset))
    rule = ruleset.rules["learned.instruction"]
    hits += (Hit(rule, rule.severity, start, end, hidden=at) for at, start, end in learned)
    hits += _clusters(hits, ruleset)
    return _judge(hits, text, hidden, ruleset)


def _hidden_hits(item: HiddenText, ruleset: Ruleset) -> Iterator[Hit]:
    covert = item.kind in _COVERT
    quotes: Quotes | None = None
    for hit in _text_hits(item.text, ruleset, covert=covert):
        quotes = quotes or Quotes(item.text)
        yield hit if covert else _in_place(hit, (), quotes, item.text)
    yield from islice(said_unseen(item.text, 0, ruleset), MAX_HITS)
    if covert:
        yield from _addressed(item.text, 0, len(item.text), ruleset)


def _body_hits(text: str, ruleset: Ruleset) -> Iterator[Hit]:
    covered = hidden_spans(text)
    quotes = Quotes(text) if covered else None
    spoken: list[Hit] = []
    for start, end in covered:
        if quotes is not None and not quotes.is_code(start, end):
            yield from _addressed(text[start:end], start, end, ruleset)
            yield from said_unseen(text[start:end], start, ruleset)
    for hit in _text_hits(text, ruleset, covert=False):
        quotes = quotes or Quotes(text)
        spoken.append(_in_place(hit, covered, quotes, text))
    yield from _samples(spoken, text)


def _samples(hits: Sequence[Hit], text: str) -> Iterator[Hit]:
    """The hits; those in three rows of one table are samples of attacks, which is quoting them."""
    rows = {h: r for h in hits if h.rule.kind in _SPOKEN and (r := _row(text, h.start)) is not None}
    tables: list[list[int]] = []
    for row in sorted(set(rows.values())):
        last = tables[-1][-1] if tables else -_ROW
        if row - last < _ROW and "\n\n" not in text[last:row]:
            tables[-1].append(row)
        else:
            tables.append([row])
    shown = {row for table in tables if len(table) >= 3 for row in table}
    for hit in hits:
        quoted = rows.get(hit) in shown and not hit.softened
        yield replace(hit, severity=_DOWN[hit.severity], softened=True) if quoted else hit


def _row(text: str, at: int) -> int | None:
    """Where the row of a table begins in which a place is; None: it is in none."""
    start = text.rfind("\n", max(0, at - _ROW), at) + 1
    return start if text.startswith("|", start) else None


_ROW = 2000  # characters of a row of a table at most


def _in_place(hit: Hit, covered: Sequence[Span], quotes: Quotes, text: str) -> Hit:
    """The hit, worse where the text is hidden, milder where it is a quotation."""
    if hit.rule.kind in ("unicode", "spam"):
        return hit
    if inside(covered, hit.start, hit.end) and not quotes.is_code(hit.start, hit.end):
        return _unseen(hit)
    words = text[hit.start : hit.end].rstrip(_AFTER)
    if not hit.softened and quotes.holds(hit.start, hit.start + len(words)):
        return replace(hit, severity=_DOWN[hit.severity], softened=True)
    return hit


def _unseen(hit: Hit) -> Hit:
    """A hit in hidden text is worse, but blocks only if no honest author would hide such words.

    Comments name tools, calls and code for honest reasons, and tell what others say.
    """
    grave = hit.rule.kind in _NEVER_HIDDEN and not hit.softened
    return replace(hit, severity=UP[hit.severity]) if grave or hit.severity == "low" else hit


_NEVER_HIDDEN = {"override", "role-play", "exfiltration"}

_AFTER = " \t\n,.!;:*_-\"'"
"""Marks that end a phrase that wants one: they stand behind the quotation."""


def _addressed(text: str, start: int, end: int, ruleset: Ruleset) -> list[Hit]:
    """Hidden text that speaks of models or prompts speaks to one."""
    rule = ruleset.rules["hidden.speaks-to-a-model"]
    expression = re.compile(rule.regex or "")
    if len(text) < 400_000 and expression.search(fold(text).text):
        return [Hit(rule, rule.severity, start, end)]
    return []


def _text_hits(text: str, ruleset: Ruleset, *, covert: bool) -> Iterator[Hit]:
    counts: Counter[tuple[str, str]] = Counter()
    for hit in all_hits(text, ruleset):
        counts[key := (hit.rule.id, hit.severity)] += 1
        if counts[key] <= MAX_HITS:
            yield _unseen(hit) if covert else hit


def _clusters(hits: Sequence[Hit], ruleset: Ruleset) -> list[Hit]:
    """Different mild signs close together, none of them quoted or denied, add up to one more."""
    rule = ruleset.rules["override.several-signs"]
    mild = sorted(
        (h for h in hits if h.severity == "low" and not h.softened and h.rule.kind in _SPOKEN),
        key=lambda h: h.place,
    )
    near = ruleset.scoring.near
    return [
        Hit(rule, rule.severity, a.start, b.end, hidden=a.hidden)
        for a, b in pairwise(mild)
        if a.hidden == b.hidden and a.rule.family != b.rule.family and 0 <= b.start - a.end <= near
    ]


_SPOKEN = {"override", "role-play", "tool-bait", "exfiltration"}


def _judge(
    hits: Sequence[Hit], text: str, hidden: Sequence[HiddenText], ruleset: Ruleset
) -> ScanResult:
    if not hits:
        return ScanResult("clean", 0.0, ())
    score = _score(hits, ruleset.scoring)
    severities = {h.severity for h in hits if h.rule.kind != "spam"}
    verdict: Verdict = "clean"
    if "high" in severities or score >= ruleset.scoring.block:
        verdict = "block"
    elif "medium" in severities or score >= ruleset.scoring.quarantine:
        verdict = "quarantine"
    return ScanResult(verdict, round(score, 4), _findings(hits, text, hidden))


def _score(hits: Sequence[Hit], scoring: Scoring) -> float:
    """0 to 1: how unlikely it is that all signs are harmless; each family counts by its worst hit.

    Signs reach the threshold of a block only where they stand `together`: a long text about attacks
    names many of them. Softened signs, spam and what was learned never do, and mild signs not that
    of a review: those that stand close together are a sign of their own.
    """
    certain: dict[str, float] = {}
    doubtful: dict[str, float] = {}
    for hit in hits:
        side = doubtful if _is_unsure(hit) else certain
        weight = _weight(hit, scoring)
        side[hit.rule.family] = max(weight, side.get(hit.rule.family, 0.0))
    mild = [weight for weight in certain.values() if weight <= scoring.weights["low"]]
    grave = [weight for weight in certain.values() if weight > scoring.weights["low"]]
    hard = _any_of((*grave, min(_any_of(mild), scoring.quarantine - 0.01)))
    below = min(_any_of((hard, *doubtful.values())), scoring.block - 0.01)
    return max(below, _together(hits, scoring)) if hard >= scoring.block else below


def _together(hits: Sequence[Hit], scoring: Scoring) -> float:
    """The score of the worst place: of the grave signs within `together` characters of one text."""
    grave = sorted(
        (h for h in hits if not _is_unsure(h) and _weight(h, scoring) > scoring.weights["low"]),
        key=lambda h: (-1 if h.hidden is None else h.hidden, h.start),
    )
    worst, first = 0.0, 0
    here: Counter[tuple[str, float]] = Counter()
    for hit in grave:
        here[hit.rule.family, _weight(hit, scoring)] += 1
        while grave[first].hidden != hit.hidden or hit.end - grave[first].start > scoring.together:
            if grave[first] is hit:
                break
            here[grave[first].rule.family, _weight(grave[first], scoring)] -= 1
            first += 1
        families: dict[str, float] = {}
        for (family, weight), count in here.items():
            if count:
                families[family] = max(weight, families.get(family, 0.0))
        worst = max(worst, _any_of(families.values()))
        if worst >= scoring.block:
            break
    return worst


def _is_unsure(hit: Hit) -> bool:
    return hit.softened or hit.rule.kind in _UNSURE


_UNSURE = {"spam", "learned"}


def _weight(hit: Hit, scoring: Scoring) -> float:
    if hit.rule.kind == "spam":
        return scoring.spam_weight
    if hit.softened and hit.severity == "low":
        return scoring.quoted_weight
    return scoring.weights[hit.severity]


def _any_of(chances: Iterable[float]) -> float:
    """The chance that one of several independent things is so."""
    return 1.0 - prod(1.0 - chance for chance in chances)


def _findings(hits: Sequence[Hit], text: str, hidden: Sequence[HiddenText]) -> tuple[Finding, ...]:
    """Findings with byte offsets, worst first; what is too much is counted on its rule's first."""
    ranked = sorted(
        set(hits), key=lambda h: (RANK[h.severity], h.place, h.rule.id, h.decoded, h.softened)
    )
    firsts: dict[tuple[str, Severity], int] = {}
    for position, hit in enumerate(ranked):
        firsts.setdefault((hit.rule.id, hit.severity), position)
    first = set(firsts.values())
    others = (p for p in range(len(ranked)) if p not in first)
    kept = sorted([*firsts.values(), *others][:MAX_FINDINGS])
    cut = set(range(len(ranked))) - set(kept)
    dropped = Counter(firsts[ranked[p].rule.id, ranked[p].severity] for p in cut)
    offsets = _byte_offsets([ranked[p] for p in kept], text, hidden)
    return tuple(_finding(ranked[p], 1 + dropped[p], offsets, hidden) for p in kept)


def _finding(
    hit: Hit, count: int, offsets: dict[int | None, dict[int, int]], hidden: Sequence[HiddenText]
) -> Finding:
    kind: HiddenKind | None = None if hit.hidden is None else hidden[hit.hidden].kind
    return Finding(
        rule=hit.rule.id,
        severity=hit.severity,
        byte_start=offsets[hit.hidden][hit.start],
        byte_end=offsets[hit.hidden][hit.end],
        count=count,
        hidden=kind,
        hidden_index=hit.hidden,
        decoded=hit.decoded,
    )


def _byte_offsets(
    hits: Sequence[Hit], text: str, hidden: Sequence[HiddenText]
) -> dict[int | None, dict[int, int]]:
    """By the number of the text: the UTF-8 offset of each character offset of its hits."""
    wanted: dict[int | None, set[int]] = {}
    for hit in hits:
        wanted.setdefault(hit.hidden, set()).update((hit.start, hit.end))
    return {
        number: _offsets_in(text if number is None else hidden[number].text, characters)
        for number, characters in wanted.items()
    }


def _offsets_in(text: str, characters: set[int]) -> dict[int, int]:
    """The same for one text, in one pass over it."""
    offsets: dict[int, int] = {}
    at = total = 0
    for position in sorted(characters):
        total += len(text[at:position].encode("utf-8", "surrogatepass"))
        offsets[position], at = total, position
    return offsets
