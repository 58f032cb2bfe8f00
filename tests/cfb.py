"""Writes OLE containers (Compound File Binary, MS-CFB) for tests: no library does."""

import struct
from dataclasses import dataclass, field

_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SECTOR, _MINI, _CUTOFF = 512, 64, 4096


@dataclass
class Storage:
    """A folder: streams and other storages by name."""

    streams: dict[str, bytes] = field(default_factory=dict)
    storages: dict[str, "Storage"] = field(default_factory=dict)


@dataclass
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    children: list[int] = field(default_factory=list)
    start: int = _END
    size: int = 0


def compound_file(root: Storage) -> bytes:
    """The bytes of a container with this content."""
    entries = [_Entry("Root Entry", 5)]
    _collect(entries, 0, root)
    mini, minifat = b"", list[int]()
    sectors, fat = list[bytes](), list[int]()

    def chain(data: bytes) -> int:
        start = len(sectors)
        count = -(-len(data) // _SECTOR)
        for n in range(count):
            sectors.append(data[n * _SECTOR : (n + 1) * _SECTOR].ljust(_SECTOR, b"\0"))
            fat.append(start + n + 1 if n + 1 < count else _END)
        return start if count else _END

    for entry in entries[1:]:
        entry.size = len(entry.data)
        if not entry.data:
            continue
        if entry.size >= _CUTOFF:
            entry.start = chain(entry.data)
            continue
        entry.start = len(minifat)
        count = -(-entry.size // _MINI)
        minifat += [entry.start + n + 1 for n in range(count - 1)] + [_END]
        mini += entry.data.ljust(count * _MINI, b"\0")
    entries[0].start, entries[0].size = chain(mini), len(mini)
    minifat_start = chain(struct.pack(f"<{len(minifat)}I", *minifat))
    minifat_sectors = -(-len(minifat) * 4 // _SECTOR)
    directory = chain(b"".join(_packed(e, entries) for e in entries))
    fat_sectors = 1
    while (len(fat) + fat_sectors) * 4 > fat_sectors * _SECTOR:
        fat_sectors += 1
    fat_start = len(fat)
    table = fat + [_FAT] * fat_sectors
    table += [_FREE] * (fat_sectors * _SECTOR // 4 - len(table))
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_sectors, directory,
        0, _CUTOFF, minifat_start, minifat_sectors, _END, 0, fat_start,
    )  # fmt: skip
    places = [fat_start + n for n in range(1, fat_sectors)]
    header += struct.pack("<108I", *(places + [_FREE] * (108 - len(places))))
    return header + b"".join(sectors) + struct.pack(f"<{len(table)}I", *table)


def _collect(entries: list[_Entry], parent: int, storage: Storage) -> None:
    for name, data in storage.streams.items():
        entries[parent].children.append(len(entries))
        entries.append(_Entry(name, 2, data))
    for name, inner in storage.storages.items():
        number = len(entries)
        entries[parent].children.append(number)
        entries.append(_Entry(name, 1))
        _collect(entries, number, inner)


def _packed(entry: _Entry, entries: list[_Entry]) -> bytes:
    """A directory entry; siblings hang on each other in a line, to the right."""
    name = entry.name.encode("utf-16-le")
    number = entries.index(entry)
    right = _FREE
    for other in entries:
        if number in other.children:
            after = sorted(other.children, key=lambda n: (len(entries[n].name), entries[n].name))
            place = after.index(number)
            right = after[place + 1] if place + 1 < len(after) else _FREE
    first = sorted(entry.children, key=lambda n: (len(entries[n].name), entries[n].name))
    return struct.pack(
        "<64sHBBIII16sIQQIQ",
        name, len(name) + 2, entry.kind, 1, _FREE, right, first[0] if first else _FREE,
        b"", 0, 0, 0, entry.start, entry.size,
    )  # fmt: skip
