"""Found passages as numbered sources for a model, within a number of tokens. Pure.

A source is a stretch of a body: passages of one version that touch are one source. Its words are
those of the body, each once; before one that begins inside a table the table's head is repeated.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from contracts.http import VersionView
from contracts.query import Hit
from kernel.fence import fence, visible
from services.search.passages import Bytes, source_of
from services.search.sections import Sections, sections

LONGEST = 200
"""Characters of a title and of a source's name; more is cut."""
BYTES_PER_TOKEN = 64
"""No text has more: one that is longer than the budget allows at that rate is not counted."""
_WIDEST = 999
"""A number with as many digits as any source's."""

Count = Callable[[str], int]


@dataclass(frozen=True)
class Text:
    """A version's body. `leads`: what is repeated before a stretch that begins at such a byte."""

    version: VersionView
    body: bytes
    leads: dict[int, str]

    @cached_property
    def sections(self) -> Sections:
        """Found once, however many passages of it are wanted with their sections."""
        return sections(self.body)

    def joined(self, before: Bytes, after: Bytes) -> bool:
        """Is there nothing but white space between the two?"""
        return before.end >= after.start or not self.body[before.end : after.start].strip()


@dataclass(frozen=True)
class Passage:
    """A found passage. `wanted`: the stretches that may stand for it, the widest first."""

    rank: int
    hit: Hit
    text: Text
    wanted: tuple[Bytes, ...]


@dataclass(frozen=True)
class Source:
    """A stretch of a body, and the passages in it, best first."""

    text: Text
    where: Bytes
    passages: tuple[Passage, ...]
    cut: bool = False

    @property
    def rank(self) -> int:
        """That of the best passage in it."""
        return self.passages[0].rank

    def rendered(self, number: int, name: str) -> str:
        """Fenced, with its number, title and source; headings and validity where there are any."""
        hit, version = self.passages[0].hit, self.text.version
        lines = [f"[{number}] {_line(hit.title)} ({_line(source_of(version))})"]
        if hit.heading_path:
            lines.append(" > ".join(_line(heading) for heading in hit.heading_path))
        if hit.valid_until is not None:
            since, until = hit.valid_from.isoformat(), hit.valid_until.isoformat()
            lines.append(f"Valid from {since} to {until}")
        words = self.text.body[self.where.start : self.where.end].decode(errors="replace").strip()
        lead = self.text.leads.get(self.where.start, "")
        return fence("\n".join([*lines, "", *([lead] if lead else []), words]), name, number)


@dataclass(frozen=True)
class Composed:
    """The sources in the order of their numbers."""

    sources: tuple[Source, ...]
    context: str
    tokens: int
    left_out: int


def compose(
    passages: Sequence[Passage], budget: int, count: Count, name: str, *, reading: bool = False
) -> Composed:
    """As many passages as fit, the best first, each by the widest stretch that fits.

    A passage that does not fit is left out, and the next one tried. If none fits, the best one is
    cut. `count`: tokens of a text; taken as additive over texts that are apart.
    """
    kept = _fitting(passages, budget, count, name)
    if not kept and passages:
        kept = _cut(passages[0], budget, count, name)
    while True:
        ordered = _in_order(kept, reading=reading)
        context = "\n\n".join(s.rendered(n, name) for n, s in enumerate(ordered, 1))
        tokens = count(context) if context else 0
        if tokens <= budget or not kept:
            break
        kept.remove(max(kept, key=lambda s: s.rank))  # a tokenizer that is not quite additive
    held = sum(len(source.passages) for source in kept)
    return Composed(tuple(ordered), context, tokens, len(passages) - held)


def _fitting(passages: Sequence[Passage], budget: int, count: Count, name: str) -> list[Source]:
    sizes: dict[tuple[str, Bytes], int] = {}

    def size(source: Source) -> int:
        key = (source.text.version.version_id, source.where)
        if key not in sizes:
            sizes[key] = count(source.rendered(_WIDEST, name))
        return sizes[key]

    kept: list[Source] = []
    for passage in passages:
        for where in passage.wanted:
            if where.end - where.start > budget * BYTES_PER_TOKEN:
                continue
            trial = _with(kept, Source(passage.text, where, (passage,)))
            if sum(map(size, trial)) <= budget:
                kept = trial
                break
    return kept


def _with(kept: Sequence[Source], new: Source) -> list[Source]:
    """The sources with a new one; those of its version that it touches become one with it."""
    rest: list[Source] = []
    for source in kept:
        same = source.text.version.version_id == new.text.version.version_id
        first, second = sorted((source.where, new.where), key=lambda w: w.start)
        if same and new.text.joined(first, second):
            new = replace(
                new,
                where=Bytes(first.start, max(first.end, second.end)),
                passages=tuple(sorted((*source.passages, *new.passages), key=lambda p: p.rank)),
            )
        else:
            rest.append(source)
    # A stretch that grew may touch what it did not touch before.
    return [*rest, new] if len(rest) == len(kept) else _with(rest, new)


def _in_order(kept: Iterable[Source], *, reading: bool) -> list[Source]:
    by_rank = sorted(kept, key=lambda s: s.rank)
    if not reading:
        return by_rank
    documents = {s.text.version.document_id: at for at, s in reversed(list(enumerate(by_rank)))}
    return sorted(
        by_rank,
        key=lambda s: (
            documents[s.text.version.document_id],
            s.text.version.valid_from,
            s.text.version.version_id,
            s.where.start,
        ),
    )


def _cut(passage: Passage, budget: int, count: Count, name: str) -> list[Source]:
    """The beginning of a passage, as many words of it as fit; none if not even one does."""
    own = passage.wanted[-1]
    ends = _ends(passage.text.body, own)
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        source = _shortened(passage, Bytes(own.start, ends[middle]))
        if count(source.rendered(1, name)) <= budget:
            low = middle + 1
        else:
            high = middle
    return [_shortened(passage, Bytes(own.start, ends[low - 1]))] if low else []


def _shortened(passage: Passage, where: Bytes) -> Source:
    return Source(passage.text, where, (passage,), cut=where != passage.wanted[-1])


def _ends(body: bytes, where: Bytes) -> list[int]:
    """Where each word of a stretch ends."""
    ends, at = list[int](), where.start
    for word in body[where.start : where.end].split():
        at = body.index(word, at) + len(word)
        ends.append(at)
    return ends


def _line(text: str) -> str:
    shown = visible(" ".join(text.split()))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
