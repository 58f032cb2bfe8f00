"""What changed from one body to another: by section, then by line, then by word. Pure.

All work is bounded by counts, not by time, so that the same two bodies always have the same diff:
what is beyond a limit is told more coarsely, and the answer says so.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Indel, LCSseq

from contracts.diff import (
    Hunk,
    Piece,
    PieceKind,
    Range,
    SectionDiff,
    SectionKind,
    SectionPlace,
)
from services.search.sections import Aligned, Section, align, longest_rise, sections

CONTEXT = 1
"""Lines that are the same and shown before and after what changed."""
MOST_LISTED = 2_000
"""Sections of one answer."""
MOST_TEXT = 2_000_000
"""Bytes of text in one answer."""
MOST_LINES = 200_000
"""Lines of one side of a section; with more they are not compared one by one."""
MOST_CELLS = 100_000_000
"""Product of two lengths that is compared exactly: about 12 MB of memory and 0.03 s."""
ALL_CELLS = 2_000_000_000
"""The same for all comparisons of one diff."""
MOST_PAIRED = 2_500
"""Comparisons of old with new lines in one place: all with all, else the first with the first, …"""
LONGEST_LINE = 200_000
"""Bytes of a line that is compared word by word."""
LIKE = 0.4
"""Likeness of two lines (of their words, 0 to 1) that are one line with other words."""

_LINE = re.compile(rb"[^\n]*\n*")
_FENCE = re.compile(rb" {0,3}(`{3,}|~{3,})")
_ROW = re.compile(rb"\s*(?:\||>|[-*+] )")
_ITEM = re.compile(rb"\s*(?:[-*+]|\d{1,9}[.)]) ")
_FIRST = re.compile(rb"\s*1[.)] ")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")


class Op(NamedTuple):
    """`a[a_start:a_end]` became `b[b_start:b_end]`; `same`: they are equal."""

    same: bool
    a_start: int
    a_end: int
    b_start: int
    b_end: int


@dataclass(frozen=True)
class Compared:
    """All sections counted by kind; those that were asked for, as far as one answer holds them."""

    counts: dict[SectionKind, int]
    sections: tuple[SectionDiff, ...]
    left_out: int
    merged: bool


def compare(old: bytes, new: bytes, *, unchanged: bool = False) -> Compared:
    """The diff of two canonical bodies.

    Args:
        old: UTF-8 Markdown.
        new: likewise.
        unchanged: list sections that are the same, too.
    """
    aligned = align(sections(old), sections(new))
    work = _Work()
    counts: Counter[SectionKind] = Counter()
    listed: list[SectionDiff] = []
    for i, j in aligned.in_order():
        found = _section(aligned, i, j)
        counts[found.kind] += 1
        if (unchanged or found.kind != "same") and len(listed) < MOST_LISTED:
            listed.append(_told(aligned, i, j, found, work))
    asked = counts.total() - (0 if unchanged else counts["same"])
    merged = aligned.old.merged or aligned.new.merged
    return Compared(dict(counts), tuple(listed), asked - len(listed), merged)


def counted(old: bytes, new: bytes) -> dict[SectionKind, int]:
    """Sections by kind, without a look at their lines."""
    aligned = align(sections(old), sections(new))
    return dict(Counter(_section(aligned, i, j).kind for i, j in aligned.in_order()))


class _Work:
    """What one diff may still spend."""

    def __init__(self) -> None:
        self.cells, self.text = ALL_CELLS, MOST_TEXT

    def cells_for(self, a: int, b: int) -> bool:
        """Takes the cells of an exact comparison, if there are enough left."""
        good = a * b <= min(MOST_CELLS, self.cells)
        self.cells -= a * b if good else 0
        return good

    def text_for(self, size: int) -> bool:
        """Takes room for a text."""
        good = size <= self.text
        self.text -= size if good else 0
        return good


def _section(aligned: Aligned, i: int | None, j: int | None) -> SectionDiff:
    """Kind and places."""
    old = None if i is None else aligned.old.all[i]
    new = None if j is None else aligned.new.all[j]
    if old is None or new is None:
        kind: SectionKind = "added" if old is None else "removed"
        return SectionDiff(kind=kind, old=_place(old), new=_place(new))
    moved, renamed = j in aligned.moved, old.heading != new.heading
    kind = (
        "changed" if old.digest != new.digest
        else "renamed" if renamed
        else "moved" if moved
        else "same"
    )  # fmt: skip
    return SectionDiff(kind=kind, moved=moved, renamed=renamed, old=_place(old), new=_place(new))


def _place(section: Section | None) -> SectionPlace | None:
    if section is None:
        return None
    path = list(section.path)
    return SectionPlace(byte_start=section.start, byte_end=section.end, heading_path=path)


def _told(
    aligned: Aligned, i: int | None, j: int | None, found: SectionDiff, work: _Work
) -> SectionDiff:
    """The section with its heading's words and its lines."""
    heading: list[Piece] = []
    hunks: list[Hunk] = []
    coarse = False
    if found.renamed and i is not None and j is not None:
        heading = _words(aligned.old.all[i].heading, aligned.new.all[j].heading, work)
    if found.kind in {"changed", "added", "removed"}:
        old = _Side(aligned.old.body, None if i is None else aligned.old.all[i])
        new = _Side(aligned.new.body, None if j is None else aligned.new.all[j])
        ops, coarse = _lines(old, new, work)
        hunks = list(_hunks(old, new, ops, work))
    told = {"heading": tuple(heading), "hunks": tuple(hunks), "coarse": coarse}
    return found.model_copy(update=told)


class _Side:
    """The lines of a section's text, as a reader sees them: a paragraph is one however it is cut,
    and so is an item of a list, a row of a table, a line of code. Blank lines belong to the one
    above them.
    """

    def __init__(self, body: bytes, section: Section | None) -> None:
        start, end = (section.text_start, section.text_end) if section else (0, 0)
        self.body, self.start, self.end = body, start, end
        self.heading = section.heading if section else ""
        self.many = body.count(b"\n", start, end) > MOST_LINES
        self.marks: list[int] = [start, end] if self.many and start < end else [start]
        if not self.many:
            self.marks += _ends(body, start, end)

    def __len__(self) -> int:
        return len(self.marks) - 1

    def line(self, number: int) -> bytes:
        """A line without its end; two that differ only in how they are cut are the same."""
        return self.body[self.marks[number] : self.marks[number + 1]].rstrip(b"\n")

    def range(self, first: int, behind: int) -> Range | None:
        if first == behind:
            return None
        return Range(byte_start=self.marks[first], byte_end=self.marks[behind])

    def text(self, first: int, behind: int) -> str:
        return self.body[self.marks[first] : self.marks[behind]].decode("utf-8", "replace")

    def size(self, first: int, behind: int) -> int:
        return self.marks[behind] - self.marks[first]


def _ends(body: bytes, start: int, end: int) -> Iterator[int]:
    """Where each line ends, and the last one."""
    fence, item, blank = b"", False, True
    for found in _LINE.finditer(body, start, end):
        if found.end() == found.start():
            break
        line = found[0]
        hit = _FENCE.match(line)
        own = bool(fence or hit or _ROW.match(line) or _FIRST.match(line))
        listed = _ITEM.match(line) is not None
        if found.start() > start and (blank or own or (listed and item)):
            yield found.start()
        # What comes below a row or a line of code begins anew only if it is one itself, or blank
        # lines are between; a mark of a list within a paragraph is a number.
        item = listed if own or blank or (listed and item) else item
        blank = line.endswith(b"\n\n") or bool(fence or hit)
        if hit and not fence:
            fence = hit[1]
        elif hit and hit[1].startswith(fence) and not line[hit.end() :].strip():
            fence = b""
    if start < end:
        yield end


# --- lines ------------------------------------------------------------------------------------


def _lines(old: _Side, new: _Side, work: _Work) -> tuple[list[Op], bool]:
    """Which lines are the same; True: more may be than were found."""
    if old.many or new.many:
        return [Op(False, 0, len(old), 0, len(new))], True
    known: dict[Hashable, int] = {}
    a, b = (
        [known.setdefault(side.line(n).replace(b"\n", b" "), len(known)) for n in range(len(side))]
        for side in (old, new)
    )
    return match(a, b, work)


def match(a: Sequence[int], b: Sequence[int], work: _Work) -> tuple[list[Op], bool]:
    """What two sequences have in common, as a list of ops that covers both.

    A longest common subsequence where that is cheap enough; else what is there once on each side
    holds the two together, and stretches between that are still too long are told as replaced
    (True).
    """
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    ends = (len(a) - tail, len(b) - tail)
    found, coarse = [Op(True, 0, head, 0, head)], False
    here = (head, head)
    for there in (*_anchors(a, b, head, ends, work), ends):
        ops, missed = _exact(a, b, here, there, work)
        found += ops
        coarse |= missed
        here = there
    found.append(Op(True, ends[0], len(a), ends[1], len(b)))
    return list(_joined(found)), coarse


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many at the start are equal."""
    length = min(len(a), len(b))
    return next((n for n in range(length) if a[n] != b[n]), length)


def _anchors(
    a: Sequence[int], b: Sequence[int], head: int, ends: tuple[int, int], work: _Work
) -> list[tuple[int, int]]:
    """Places that what is there once on each side gives, if the middle is too long as it is."""
    if (ends[0] - head) * (ends[1] - head) <= min(MOST_CELLS, work.cells):
        return []
    mine, theirs = _once(a[head : ends[0]]), _once(b[head : ends[1]])
    both = [(i + head, theirs[x] + head) for x, i in mine.items() if x in theirs]
    kept = longest_rise([j for _, j in both])
    return [pair for n, pair in enumerate(both) if n in kept]


def _once(a: Sequence[int]) -> dict[int, int]:
    """Where each of those is that are there once, in order."""
    counts = Counter(a)
    return {x: n for n, x in enumerate(a) if counts[x] == 1}


def _exact(
    a: Sequence[int],
    b: Sequence[int],
    here: tuple[int, int],
    there: tuple[int, int],
    work: _Work,
) -> tuple[list[Op], bool]:
    """The ops of `a[here[0]:there[0]]` and `b[here[1]:there[1]]`."""
    n, m = there[0] - here[0], there[1] - here[1]
    if not n or not m or not work.cells_for(n, m):
        return [Op(False, here[0], there[0], here[1], there[1])], bool(n and m)
    codes = LCSseq.opcodes(a[here[0] : there[0]], b[here[1] : there[1]])
    x, y = here
    return [
        Op(c.tag == "equal", x + c.src_start, x + c.src_end, y + c.dest_start, y + c.dest_end)
        for c in codes
    ], False


def _joined(ops: Iterable[Op]) -> Iterator[Op]:
    """Without empty ones, neighbours of one kind in one."""
    last: Op | None = None
    for op in ops:
        if op.a_start == op.a_end and op.b_start == op.b_end:
            continue
        if last is not None and last.same == op.same:
            last = Op(op.same, last.a_start, op.a_end, last.b_start, op.b_end)
            continue
        if last is not None:
            yield last
        last = op
    if last is not None:
        yield last


def _hunks(old: _Side, new: _Side, ops: Sequence[Op], work: _Work) -> Iterator[Hunk]:
    for number, op in enumerate(ops):
        if op.same:
            yield from _same(old, new, op, number > 0, number < len(ops) - 1, work)
        else:
            yield from _replaced(old, new, op, work)


def _same(old: _Side, new: _Side, op: Op, after: bool, before: bool, work: _Work) -> Iterator[Hunk]:
    """Lines that are the same: those next to a change, and how much lies between."""
    count = op.b_end - op.b_start
    head, tail = CONTEXT * after, CONTEXT * before
    cuts = [0, count] if count <= head + tail + 1 else [0, head, count - tail, count]
    for start, end in pairwise(cuts):
        if start == end:
            continue
        first, behind = op.b_start + start, op.b_start + end
        size, text = new.size(first, behind), ""
        gap = len(cuts) > 2 and (start, end) == (cuts[1], cuts[2])
        if not gap and work.text_for(size):
            text = new.text(first, behind).rstrip("\n")
        yield Hunk(
            kind="same",
            old=old.range(op.a_start + start, op.a_start + end),
            new=new.range(first, behind),
            pieces=(Piece(kind="same", text=text),) if text else (),
            left_out=0 if text else size,
        )


def _replaced(old: _Side, new: _Side, op: Op, work: _Work) -> Iterator[Hunk]:
    """Lines that went, came, or have other words now."""
    i, j = op.a_start, op.b_start
    for x, y in (*_partners(old, new, op, work), (op.a_end, op.b_end)):
        if i < x:
            yield _alone("removed", old, i, x, work)
        if j < y:
            yield _alone("added", new, j, y, work)
        if x < op.a_end and y < op.b_end:
            yield _reworded(old, new, x, y, work)
        i, j = x + 1, y + 1


def _alone(kind: PieceKind, side: _Side, first: int, behind: int, work: _Work) -> Hunk:
    """Lines of one side only."""
    size = side.size(first, behind)
    fits = work.text_for(size)
    pieces = (Piece(kind=kind, text=side.text(first, behind).rstrip("\n")),) if fits else ()
    where = side.range(first, behind)
    left_out = 0 if fits else size
    if kind == "removed":
        return Hunk(kind="removed", old=where, pieces=pieces, left_out=left_out)
    return Hunk(kind="added", new=where, pieces=pieces, left_out=left_out)


def _reworded(old: _Side, new: _Side, i: int, j: int, work: _Work) -> Hunk:
    """A line with other words."""
    size = old.size(i, i + 1) + new.size(j, j + 1)
    fits = work.text_for(size)
    words: list[Piece] = []
    if fits:
        words = _words(old.line(i).decode(), new.line(j).decode(), work)
    return Hunk(
        kind="changed",
        old=old.range(i, i + 1),
        new=new.range(j, j + 1),
        pieces=tuple(words),
        left_out=0 if fits else size,
    )


# --- which line became which ------------------------------------------------------------------


def _partners(old: _Side, new: _Side, op: Op, work: _Work) -> list[tuple[int, int]]:
    """Old and new lines that are one line with other words, in order."""
    n, m = op.a_end - op.a_start, op.b_end - op.b_start
    if not n or not m or old.many or new.many or work.text <= 0:
        return []
    a = [_bag(old.line(i)) for i in range(op.a_start, op.a_end)[:MOST_PAIRED]]
    b = [_bag(new.line(j)) for j in range(op.b_start, op.b_end)[:MOST_PAIRED]]
    if n * m > MOST_PAIRED:
        rows = range(min(n, m, MOST_PAIRED))
        pairs = [(r, r) for r in rows if _likeness(a[r], b[r], work) >= LIKE]
    else:
        pairs = _likest([[_likeness(x, y, work) for y in b] for x in a])
    return [(op.a_start + i, op.b_start + j) for i, j in pairs]


def _bag(line: bytes) -> list[str]:
    """The first words of a line."""
    return _WORD.findall(line[:20_000].decode("utf-8", "replace"))


def _likeness(a: list[str], b: list[str], work: _Work) -> float:
    """Twice the common subsequence of the words, by their number: 0 to 1; 0 if it is too dear."""
    if not a or not b:
        return float(a == b)
    if not work.cells_for(len(a), len(b)):
        return 0.0
    return Indel.normalized_similarity(a, b, score_cutoff=LIKE)


def _likest(likeness: list[list[float]]) -> list[tuple[int, int]]:
    """Pairs in order with the largest sum of likenesses that reach `LIKE` (Needleman-Wunsch)."""
    n, m = len(likeness), len(likeness[0])
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            like = likeness[i][j]
            pair = like + best[i + 1][j + 1] if like >= LIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], pair)
    pairs = []
    i = j = 0
    while i < n and j < m:
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


# --- words ------------------------------------------------------------------------------------


class _Run(NamedTuple):
    """`a[a_start:a_end] == b[b_start:b_end]`, in characters."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def _words(a: str, b: str, work: _Work) -> list[Piece]:
    """A line as words that stayed, went and came."""
    whole = [*_piece("removed", a), *_piece("added", b)]
    if max(len(a), len(b)) > LONGEST_LINE:
        return whole
    marks = [[m.span() for m in _TOKEN.finditer(text)] for text in (a, b)]
    known: dict[str, int] = {}
    ids = [
        [known.setdefault(text[s:e], len(known)) for s, e in spans]
        for text, spans in zip((a, b), marks, strict=True)
    ]
    ops, coarse = match(ids[0], ids[1], work)
    if coarse:
        return whole
    runs = _readable([run for op in ops if op.same for run in _runs(a, b, marks, op)], a, b)
    return list(_pieces(a, b, runs))


def _runs(a: str, b: str, marks: list[list[tuple[int, int]]], op: Op) -> Iterator[_Run]:
    """Equal words as equal texts: cut where the space between them differs, but for a line end."""
    run: _Run | None = None
    for i, j in zip(range(op.a_start, op.a_end), range(op.b_start, op.b_end), strict=True):
        (start, end), (other, other_end) = marks[0][i], marks[1][j]
        if run is not None and _same_gap(a[run.a_end : start], b[run.b_end : other]):
            run = _Run(run.a_start, end, run.b_start, other_end)
            continue
        if run is not None:
            yield run
        run = _Run(start, end, other, other_end)
    if run is not None:
        yield run


def _same_gap(a: str, b: str) -> bool:
    """A paragraph that is cut into lines elsewhere is the same paragraph."""
    return a == b or (("\n" in a or "\n" in b) and a != "" and b != "")


def _readable(runs: list[_Run], a: str, b: str) -> list[_Run]:
    """Without runs of one or two words between longer changes: they are equal by chance.

    The rule is that of the semantic cleanup of diff-match-patch: a run goes that is no longer than
    the change before it and the change behind it.
    """
    kept: list[_Run] = []
    for number, run in enumerate(runs):
        after = runs[number + 1] if number + 1 < len(runs) else None
        before = kept[-1] if kept else None
        left = _gap(before, run, len(a), len(b))
        right = _gap(run, after, len(a), len(b))
        size = run.a_end - run.a_start
        by_chance = size <= min(left, right) and len(_WORD.findall(a[run.a_start : run.a_end])) < 3
        if not by_chance:
            kept.append(run)
    return kept


def _gap(before: _Run | None, after: _Run | None, a_length: int, b_length: int) -> int:
    """Characters of the longer side of a change."""
    a_start, b_start = (before.a_end, before.b_end) if before else (0, 0)
    a_end, b_end = (after.a_start, after.b_start) if after else (a_length, b_length)
    return max(a_end - a_start, b_end - b_start)


def _pieces(a: str, b: str, runs: list[_Run]) -> Iterator[Piece]:
    i = j = 0
    same = ""
    for run in (*runs, _Run(len(a), len(a), len(b), len(b))):
        gone, come = a[i : run.a_start], b[j : run.b_start]
        head = _blank(gone, come)
        tail = _blank(gone[len(head) :][::-1], come[len(head) :][::-1])
        gone, come = (t[len(head) : len(t) - len(tail)] for t in (gone, come))
        same += head
        if gone or come:
            yield from _piece("same", same)
            yield from _piece("removed", gone)
            yield from _piece("added", come)
            same = ""
        same += tail[::-1] + a[run.a_start : run.a_end]
        i, j = run.a_end, run.b_end
    yield from _piece("same", same)


def _blank(a: str, b: str) -> str:
    """The blanks that both start with."""
    length = 0
    for x, y in zip(a, b, strict=False):
        if not (x == y and x.isspace()) and {x, y} != {" ", "\n"}:
            break
        length += 1
    return a[:length]


def _piece(kind: PieceKind, text: str) -> Iterator[Piece]:
    if text:
        yield Piece(kind=kind, text=text)
