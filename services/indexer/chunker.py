"""A body of Markdown becomes passages, byte-exact: heading by heading up to a number of tokens, or
paragraph by paragraph up to a number of characters."""

import hashlib
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from typing import Protocol

from contracts.artifacts import Chunk, ChunkManifest, breadcrumb, embedded_text
from contracts.events import Chunking
from services.indexer.blocks import Block, Span, blocks
from services.indexer.paragraphs import Measure, Paths, passages
from services.indexer.splitting import Way, parts, slices, ways, words

CHUNKERS: dict[Chunking, str] = {"heading": "headings-4", "paragraph": "paragraphs-3"}
"""A name changes when the same body would be cut, named or labelled in another way."""

LONGEST_SLUG = 155
"""Characters; an id stays below 200."""

NOT_IN_SLUG = re.compile(r"(?:[^\w§]|_)+")
ENOUGH_TO_DETECT = 200
"""Characters from which a language detector is trusted."""


class Reader(Protocol):
    """The part of an embedder that matters to a cut."""

    @property
    def max_tokens(self) -> int: ...

    def count_tokens(self, text: str) -> int: ...


@dataclass(frozen=True)
class Cut:
    """How to cut.

    `limit`: tokens of an embedded text (breadcrumb, context, passage) by `count_tokens`.
    `detect`: text to language code, or `unknown`. `chunking`: the strategy. `most`: tokens that the
    embedder reads, the bound of a passage that is cut by paragraphs.
    """

    count_tokens: Callable[[str], int]
    detect: Callable[[str], str] | None = None
    limit: int = 500
    chunking: Chunking = "heading"
    most: int = 512

    def __post_init__(self) -> None:
        if self.limit < 16:
            raise ValueError("a passage needs room for 16 tokens")

    def fitted(self, reader: Reader, chunking: Chunking) -> "Cut":
        """The same for what `reader` is to embed, in a project that cuts by `chunking`."""
        return replace(
            self,
            count_tokens=reader.count_tokens,
            limit=min(self.limit, reader.max_tokens),
            most=reader.max_tokens,
            chunking=chunking,
        )


def cut(body: str, title: str, document_id: str, language: str, options: Cut) -> tuple[Chunk, ...]:
    """The passages of `body` in reading order; none for a blank one.

    They leave out nothing but white space; cut by headings they do not overlap either. Where a
    breadcrumb needs more than half of the limit, passages still get the other half and the
    embedded text is longer than the limit.

    Args:
        body: Markdown.
        title: of the document.
        document_id: the same for all its versions, so that a passage which stays keeps its id.
        language: of the document; that of a passage which is too short to tell.
        options: how.
    """
    ways = {"heading": _by_headings, "paragraph": _by_paragraphs}
    names, position = _Names(document_id), Bytes(body)
    chunks = []
    for path, ordinal, passage in ways[options.chunking](body, title, options):
        text = body[passage.start : passage.end]
        chunks.append(
            Chunk(
                chunk_id=names.of(path, ordinal, text),
                heading_path=path,
                byte_start=position.at(passage.start),
                byte_end=position.at(passage.end),
                tokens=passage.tokens,
                language=_language(text, language, options.detect),
                context=passage.context,
            )
        )
    return tuple(chunks)


_Found = Iterator[tuple[tuple[str, ...], int, "Passage"]]
"""Heading path, ordinal under that heading from 1, passage."""


def _by_headings(body: str, title: str, options: Cut) -> _Found:
    for section in sections(blocks(body)):
        found = _Section(body, title, section, options).passages()
        for ordinal, passage in enumerate(found, 1):
            yield section.path, ordinal, passage


def _by_paragraphs(body: str, title: str, options: Cut) -> _Found:
    paths = Paths.of(blocks(body))
    crumb = max(options.count_tokens(breadcrumb(title, path)) for path in paths.all)
    room = max(options.most - crumb, options.most // 2)
    end, before, ordinal = 0, None, 0
    for span in passages(body, Measure(body, options.count_tokens, room)):
        path = paths.at(max(span.start, end))
        ordinal = ordinal + 1 if path == before else 1
        end, before = span.end, path
        text = embedded_text(title, path, "", body[span.start : span.end])
        tokens = max(1, options.count_tokens(text))
        yield path, ordinal, Passage(span.start, span.end, tokens=tokens)


def manifest(
    body_sha256: str, title: str, chunks: Iterable[Chunk], chunking: Chunking = "heading"
) -> ChunkManifest:
    """The artefact that `Chunked` points at."""
    return ChunkManifest(
        body_sha256=body_sha256, chunker=CHUNKERS[chunking], title=title, chunks=tuple(chunks)
    )


@dataclass
class Section:
    """What stands under one heading, up to the next of any level.

    `headings` are more than one where the upper ones have no text of their own.
    """

    path: tuple[str, ...] = ()
    headings: list[Block] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def sections(found: Iterable[Block]) -> Iterator[Section]:
    """Group blocks under the headings in force."""
    current, force = Section(), list[Block]()
    for block in found:
        if block.kind != "heading":
            current.blocks.append(block)
            continue
        force = [*(h for h in force if h.depth < block.depth), block]
        empty_parents = []
        if current.headings and not current.blocks and current.headings[-1].depth < block.depth:
            empty_parents = current.headings
        elif current.headings or current.blocks:
            yield current
        path = tuple(heading.text for heading in force if heading.text)
        current = Section(path, [*empty_parents, block])
    if current.headings or current.blocks:
        yield current


@dataclass(frozen=True, slots=True)
class Passage(Span):
    """A span to be embedded, the text before it, and the tokens of both with the breadcrumb."""

    context: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Piece(Span):
    """A span that is not cut any further, its tokens, and what must precede it at the start."""

    weight: int
    context: str = ""
    context_weight: int = 0


class _Section:
    """One section being cut."""

    def __init__(self, body: str, title: str, section: Section, options: Cut) -> None:
        self._body, self._title, self._section = body, title, section
        self._count, self._limit = options.count_tokens, options.limit
        crumb = self._count(breadcrumb(title, section.path))
        self._budget = max(self._limit - crumb, self._limit // 2)
        self._ceiling = crumb + self._budget

    def passages(self) -> Iterator[Passage]:
        """In order."""
        for group in _balanced(self._packed(self._pieces()), self._budget):
            yield from self._checked(group)

    def _weigh(self, span: Span) -> int:
        return self._count(self._body[span.start : span.end])

    def _pieces(self) -> Iterator[_Piece]:
        """Headings and blocks, the large ones in parts that fit."""
        room = self._budget
        if self._section.headings:
            heading = Span(self._section.headings[0].start, self._section.headings[-1].end)
            weight = self._weigh(heading)
            if weight <= self._budget // 2:
                yield _Piece(heading.start, heading.end, weight)
                room = self._budget - weight  # so that the heading never stands alone
            else:
                yield from self._split(heading, (), self._budget)
        before = None
        for block in self._section.blocks:
            if block.kind == "table":
                yield from self._table(block, before, room)
            else:
                yield from self._split(block, ways(block), room)
            before, room = block, self._budget

    def _split(self, span: Span, cuts: Sequence[Way], room: int) -> Iterator[_Piece]:
        """`span` whole if it fits, else by the first way that cuts it, else by words."""
        weight = self._weigh(span)
        if weight <= room:
            yield _Piece(span.start, span.end, weight)
        elif not cuts:
            yield from self._by_words(span, room)
        else:
            for part in parts(self._body, span, cuts[0](self._body, span)):
                yield from self._split(part, cuts[1:], room)

    def _by_words(self, span: Span, room: int) -> Iterator[_Piece]:
        """Runs of words that fill the room; a word that does not fit is cut between characters."""
        start = end = span.start
        load = 0
        for word in words(self._body, span):
            weight = self._weigh(word)
            if load and load + weight > room:
                yield _Piece(start, end, load)
                load = 0
            if weight > room:
                for part in slices(self._body, word, room, self._weigh):
                    yield _Piece(part.start, part.end, self._weigh(part))
                continue
            start = start if load else word.start
            end, load = word.end, load + max(1, weight)
        if load:
            yield _Piece(start, end, load)

    def _table(self, table: Block, before: Block | None, room: int) -> Iterator[_Piece]:
        """A table whole or by rows, with the paragraph before it; later rows also get the head."""
        lead = self._lead(before)
        opening, whole = self._count(lead), self._weigh(table)
        if whole <= room and whole + opening <= self._budget:
            yield _Piece(table.start, table.end, whole, lead, opening)
            return
        head = table.header or Span(table.start, table.start)
        repeated = "\n".join(part for part in (lead, self._head(head)) if part)
        later = self._count(repeated)
        for piece in self._split(table, ways(table), min(room, self._budget - later)):
            context = (lead, opening) if piece.start < head.end else (repeated, later)
            yield _Piece(piece.start, piece.end, piece.weight, *context)

    def _lead(self, before: Block | None) -> str:
        """The end of the paragraph before a table."""
        if before is None or before.kind != "paragraph":
            return ""
        text = self._body[before.start : before.end].split()
        fit = self._fitting(reversed(text), self._limit // 8)
        return " ".join(text) if fit == len(text) else " ".join(("…", *text[len(text) - fit :]))

    def _head(self, head: Span) -> str:
        """A table's head, the front of it where it is very wide."""
        text = self._body[head.start : head.end]
        if self._count(text) <= self._limit // 4:
            return text
        cells = text.split(" ")
        return " ".join((*cells[: self._fitting(cells, self._limit // 4)], "…"))

    def _fitting(self, text: Iterable[str], budget: int) -> int:
        """How many words of `text`, from its front, fit beside a mark of omission."""
        load = accumulate(self._count(word) for word in text)
        return sum(1 for _ in takewhile(lambda tokens: tokens < budget, load))

    def _packed(self, pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
        """Neighbours together as long as they fit."""
        group: list[_Piece] = []
        load = 0
        for piece in pieces:
            if not group or load + piece.weight > self._budget:
                if group:
                    yield group
                group, load = [], piece.context_weight
            group.append(piece)
            load += piece.weight
        if group:
            yield group

    def _checked(self, group: list[_Piece]) -> Iterator[Passage]:
        """The passage of a group; two, where joined text has more tokens than its parts."""
        passage = Passage(group[0].start, group[-1].end, group[0].context)
        tokens = self._count(self._embedded(passage))
        if tokens <= self._ceiling or passage.end - passage.start == 1:
            yield replace(passage, tokens=max(1, tokens))
        elif len(group) > 1:
            yield from self._checked(group[: len(group) // 2])
            yield from self._checked(group[len(group) // 2 :])
        else:
            middle = (passage.start + passage.end) // 2
            for half in parts(self._body, passage, [middle]):
                yield from self._checked([_Piece(half.start, half.end, 0, passage.context)])

    def _embedded(self, passage: Passage) -> str:
        text = self._body[passage.start : passage.end]
        return embedded_text(self._title, self._section.path, passage.context, text)


def _balanced(groups: Iterable[list[_Piece]], budget: int) -> Iterator[list[_Piece]]:
    """A last passage of a few words takes over some of the one before it."""
    # A table may have a hundred thousand groups: only two are held.
    held: deque[list[_Piece]] = deque()
    for group in groups:
        if len(held) == 2:
            yield held.popleft()
        held.append(group)
    if len(held) == 2:
        _balance(held[0], held[1], budget)
    yield from held


def _balance(full: list[_Piece], last: list[_Piece], budget: int) -> None:
    sizes = [sum(piece.weight for piece in group) for group in (full, last)]
    if sizes[1] >= budget // 8:
        return
    while len(full) > 2 and not full[-1].context and not last[0].context:
        if sizes[1] + full[-1].weight > sizes[0] - full[-1].weight:
            break
        piece = full.pop()
        last.insert(0, piece)
        sizes = [sizes[0] - piece.weight, sizes[1] + piece.weight]


def _language(passage: str, default: str, detect: Callable[[str], str] | None) -> str:
    if detect is None or len(passage) < ENOUGH_TO_DETECT:
        return default
    found = detect(passage)
    return default if found == "unknown" else found


class _Names:
    """Ids of passages: they depend on headings, words, and the place under the heading only."""

    def __init__(self, document_id: str) -> None:
        self._prefix = document_id[:16]
        self._seen: Counter[str] = Counter()

    def of(self, path: Sequence[str], ordinal: int, passage: str) -> str:
        """`document:heading/subheading:ordinal:hash`, and `-2` from the second equal one on."""
        digest = hashlib.sha256(passage.encode()).hexdigest()[:8]
        name = f"{self._prefix}:{slug(path)}:{ordinal}:{digest}"
        self._seen[name] += 1
        count = self._seen[name]
        return name if count == 1 else f"{name}-{count}"


def slug(path: Sequence[str]) -> str:
    """Headings in small letters, digits and `§`, joined by `/`.

    Where that is too long, each heading is cut to an equal share, and a hash of all follows.
    """
    headings = [_slug_of(heading) for heading in path]
    full = "/".join(headings)
    if len(full) <= LONGEST_SLUG:
        return full
    share = max(1, (LONGEST_SLUG - 9) // len(headings) - 1)
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{'/'.join(heading[:share] for heading in headings)}~{digest}"


def _slug_of(heading: str) -> str:
    letters = unicodedata.normalize("NFC", heading.lower())
    return NOT_IN_SLUG.sub("-", letters).strip("-")


class Bytes:
    """Places in characters to places in UTF-8 bytes; quick when they hardly ever go back."""

    def __init__(self, body: str) -> None:
        self._body, self._at, self._bytes = body, 0, 0

    def at(self, place: int) -> int:
        if place < self._at:
            self._bytes -= len(self._body[place : self._at].encode())
            self._at = place
        self._bytes += len(self._body[self._at : place].encode())
        self._at = place
        return self._bytes
