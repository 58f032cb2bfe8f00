"""The pages of a PDF whose end is missing: what follows from its objects alone.

The end holds the table of objects and the way to the pages, so a file that was cut off cannot be
opened at all, though most of its pages are there. Each object names itself where it stands. They
are listed anew, those packed in object streams are unpacked, and a tree of pages is made of the
pages that are left where the old one is gone (ISO 32000-1, 7.3.10, 7.5.4, 7.5.7, 7.7.3).
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap

_OBJECT = re.compile(rb"(?<![0-9])(\d{1,10})[\s\0]+(\d{1,5})[\s\0]+obj\b")
_STREAM = re.compile(rb"(?<!end)stream\r?\n")
_STREAM_END = re.compile(rb"[\s\0]{0,99}endstream")
_LENGTH = re.compile(rb"/Length[\s\0]+(\d{1,10})(?![\d\s\0]+R)")
_PACKED = re.compile(rb"/Type[\s\0]*/ObjStm\b")
_PAGE = re.compile(rb"/Type[\s\0]*/Page(?![A-Za-z])")
_PAGES = re.compile(rb"/Type[\s\0]*/Pages\b")
_COUNT = re.compile(rb"/Count[\s\0]+(\d{1,10})")
_ENCRYPT = re.compile(rb"/Encrypt[\s\0]+\d+[\s\0]+\d+[\s\0]+R")
_ID = re.compile(rb"/ID[\s\0]*\[[\s\0]*<[0-9A-Fa-f]{2,64}>[\s\0]*<[0-9A-Fa-f]{2,64}>[\s\0]*\]")
_LINEAR = re.compile(rb"/Linearized\b[^>]*?/N[\s\0]+(\d{1,10})", re.S)
_PARENT = re.compile(rb"/Parent[\s\0]+(\d{1,10})[\s\0]+\d{1,5}[\s\0]+R")
_ELSEWHERE = re.compile(
    rb"/(?:Parent|Kids|Annots|B|P|Dest|Metadata|StructParent\w*|PieceInfo|Thumb|OC|LastModified)"
    rb"[\s\0]*(?:\[[^\[\]]*\]|\d{1,10}[\s\0]+\d{1,5}[\s\0]+R)"
)
"""References of a page to what it is not drawn with."""

# Bounded: no number in a file of nothing but digits is read to its end from each of them.
_REFERENCE = re.compile(rb"(?<![0-9])(\d{1,10})[\s\0]+\d{1,5}[\s\0]+R")
_NUMBER = {name: re.compile(rb"/" + name + rb"[\s\0]+(\d{1,10})") for name in (b"N", b"First")}
_MOST_OBJECTS = 1_000_000
_MOST_UNPACKED = 256 * 1024 * 1024
_HEAD = 4096
_MOST_PARTS, _MOST_TREES = 5000, 3


Data = bytes | mmap


@dataclass(frozen=True)
class Salvage:
    """A new end for a PDF; `damaged`: numbers of pages that are gone, or not whole."""

    end: bytes
    damaged: frozenset[int]


@dataclass
class _Objects:
    """Where each object stands, and the text of its dictionary.

    `base` is the size of the file, `end` what we put behind it.
    """

    base: int
    end: bytearray
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    heads: dict[int, bytes] = field(default_factory=dict)
    cut: int = 0
    """The object in whose stream the file ends."""
    _parts: dict[int, list[int]] = field(default_factory=dict)

    def numbers(self, kind: re.Pattern[bytes]) -> list[int]:
        """Of the objects of a kind, in the order of the file."""
        return [number for number, head in self.heads.items() if kind.search(head)]

    def add(self, number: int, generation: int, offset: int, head: bytes) -> None:
        # One that was changed later counts, at its new place.
        self.heads.pop(number, None)
        self.offsets[number], self.heads[number] = (offset, generation), head

    def parts(self, number: int) -> list[int]:
        """Objects that an object is drawn with."""
        if number not in self._parts:
            told = _REFERENCE.findall(_ELSEWHERE.sub(b"", self.heads[number]))
            self._parts[number] = list(dict.fromkeys(map(int, told)))[:_MOST_PARTS]
        return self._parts[number]

    def append(self, number: int, body: bytes) -> None:
        """An object of our own behind the others."""
        offset = self.base + len(self.end)
        self.end += b"%d 0 obj\n%b\nendobj\n" % (number, body)
        self.add(number, 0, offset, body)


def salvage(data: Data, most_pages: int) -> Salvage | None:
    """What to put behind `data` for it to be a PDF; None if no page is left in it.

    Args:
        data: a PDF that cannot be opened.
        most_pages: how many pages it may claim to have.
    """
    found = _Objects(len(data), bytearray(b"\nendstream endobj\n"))
    for number, generation, offset, head, whole in _objects(data):
        found.add(number, generation, offset, head)
        found.cut = 0 if whole else number
    _unpack(found, data)
    pages, damaged = _pages(found, data[:_HEAD], most_pages)
    if not any(pages):
        return None
    root = max(found.offsets) + 1
    kids = b" ".join(b"%d 0 R" % (page or root + 2) for page in pages)
    found.append(root, b"<</Type/Catalog/Pages %d 0 R>>" % (root + 1))
    found.append(root + 1, b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), kids))
    found.append(root + 2, b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]>>" % (root + 1))
    table = found.base + len(found.end)
    found.end += _table(found)
    found.end += b"trailer\n<</Root %d 0 R/Size %d%b>>\nstartxref\n%d\n%%%%EOF\n" % (
        root, root + 3, _encryption(data), table,
    )  # fmt: skip
    return Salvage(bytes(found.end), damaged)


def _objects(data: Data) -> Iterator[tuple[int, int, int, bytes, bool]]:
    """Number, generation, offset and head of each object, and whether its end is there.

    What is in streams is no object.
    """
    at = 0
    ends = _Next(data, b"endobj")
    for _ in range(_MOST_OBJECTS):
        match = _OBJECT.search(data, at)
        if match is None:
            return
        head, at = _head(data, match.end(), ends)
        yield int(match[1]), int(match[2]), match.start(), head, at < len(data)


class _Next:
    """Where a word stands next; asked for rising places, it reads the data once."""

    def __init__(self, data: Data, word: bytes) -> None:
        self._data, self._word = data, word
        self._found = data.find(word)

    def __call__(self, start: int) -> int:
        """-1 if it does not come again."""
        if 0 <= self._found < start:
            self._found = self._data.find(self._word, start)
        return self._found


def _head(data: Data, start: int, ends: _Next) -> tuple[bytes, int]:
    """What stands before a stream or the end of an object, and where the object ends."""
    limit = ends(start)
    if limit < 0:
        following = _OBJECT.search(data, start)
        limit = following.start() if following else len(data)
    stream = _STREAM.search(data, start, limit)
    if stream is None:
        return data[start:limit], limit
    head = data[start : stream.start()]
    length = _LENGTH.search(head)
    told = stream.end() + int(length[1]) if length else 0
    if told and _STREAM_END.match(data, told):
        return head, told
    finish = data.find(b"endstream", stream.end())
    return head, finish if finish >= 0 else len(data)


def _unpack(found: _Objects, data: Data) -> None:
    """The objects in object streams as objects of their own."""
    left = _MOST_UNPACKED
    for number in found.numbers(_PACKED):
        offset, _ = found.offsets[number]
        head = found.heads[number]
        place = _OBJECT.match(data, offset)
        stream = _STREAM.match(data, place.end() + len(head)) if place else None
        counts = [pattern.search(head) for pattern in _NUMBER.values()]
        if stream is None or not all(counts):
            continue
        content = _inflated(data, stream.end(), left) if b"/FlateDecode" in head else b""
        many, first = (int(count[1]) for count in counts if count)
        for inner, body in _packed(content, many, first):
            # Counted, as objects may claim the same bytes again and again.
            left -= len(body)
            if left <= 0:
                return
            if inner not in found.offsets or found.offsets[inner][0] < offset:
                found.append(inner, body)


def _inflated(data: Data, start: int, most: int) -> bytes:
    """As far as it is whole."""
    unpacker, parts, size = zlib.decompressobj(), [], 0
    try:
        for at in range(start, len(data), 65536):
            parts.append(unpacker.decompress(data[at : at + 65536], max(1, most - size)))
            size += len(parts[-1])
            if unpacker.eof or size >= most:
                break
    except zlib.error:
        pass
    return b"".join(parts)


def _packed(content: bytes, many: int, first: int) -> Iterator[tuple[int, bytes]]:
    """Number and text of the objects in an unpacked object stream."""
    numbers = [
        int(n) for n in re.findall(rb"\d{1,10}", content[:first])[: 2 * min(many, len(content))]
    ]
    starts = [first + offset for offset in numbers[1::2]]
    ends = [*starts[1:], len(content)]
    for number, start, end in zip(numbers[::2], starts, ends, strict=False):
        # The last one may be cut off.
        if start < end <= len(content) and number <= 10 * _MOST_OBJECTS:
            yield number, content[start:end].strip()


def _pages(found: _Objects, start: bytes, most: int) -> tuple[list[int], frozenset[int]]:
    """Objects of the pages in their order, 0 for one that is gone; numbers of the damaged ones."""
    pages = found.numbers(_PAGE)
    trees = [n for n in found.numbers(_PAGES) if not _PARENT.search(found.heads[n])]
    for tree in trees[: -_MOST_TREES - 1 : -1]:
        leaves = _leaves(found, tree)
        if pages and set(pages) <= set(leaves):
            # It knows the place of each, of those too that are gone.
            pages = [leaf if leaf in found.heads else 0 for leaf in leaves]
            break
    else:
        counts = (_COUNT.search(found.heads[n]) for n in found.numbers(_PAGES))
        linear = _LINEAR.search(start)
        told = max([int(count[1]) for count in (*counts, linear) if count], default=0)
        # What is gone was behind what is there.
        pages += [0] * (min(told, most) - len(pages))
    pages = pages[: most + 1]
    damaged = {n for n, page in enumerate(pages, 1) if not page or not _is_whole(found, page)}
    return pages, frozenset(damaged)


def _leaves(found: _Objects, tree: int) -> list[int]:
    """The nodes below a node of the tree of pages that have none below them."""
    leaves: list[int] = []
    seen, waiting = {tree}, [tree]
    while waiting:
        number = waiting.pop()
        head = found.heads.get(number, b"")
        if not _PAGES.search(head):
            leaves.append(number)
            continue
        kids = head.partition(b"/Kids")[2].partition(b"]")[0]
        new = [kid for kid in map(int, _REFERENCE.findall(kids)) if kid not in seen]
        seen.update(new)
        waiting += reversed(new)
    return leaves


def _is_whole(found: _Objects, page: int) -> bool:
    """Whether all that the page is drawn with is there, streams to their end."""
    seen, waiting = {page}, [page]
    parent = _PARENT.search(found.heads[page])
    if b"/Resources" not in found.heads[page] and parent:
        waiting.append(int(parent[1]))
    while waiting and len(seen) < _MOST_PARTS:
        number = waiting.pop()
        if number not in found.heads or number == found.cut:
            return False
        new = [part for part in found.parts(number) if part not in seen]
        seen.update(new)
        waiting += new
    return True


def _encryption(data: Data) -> bytes:
    """What an older end, or the beginning, says of encryption: many files have no password."""
    encrypted, names = _ENCRYPT.search(data), _ID.search(data)
    return encrypted[0] + names[0] if encrypted and names else b""


def _table(found: _Objects) -> bytes:
    """A cross-reference table, a section for each object."""
    lines = [b"xref\n0 1\n0000000000 65535 f \n"]
    for number, (offset, generation) in sorted(found.offsets.items()):
        if number:
            lines.append(b"%d 1\n%010d %05d n \n" % (number, offset, generation))
    return b"".join(lines)
