"""Zipped formats with a limit on what comes out."""

import io
import struct
import zipfile
from pathlib import Path

import pytest

from kernel.errors import Refusal
from kernel.media import OLE_MAGIC
from services.converter.parsing.archive import Archive
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions(max_unpacked_bytes=20_000_000, max_unpacked_ratio=100)


def zipped(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def code_of(path: Path, read: str | None = None) -> str:
    with pytest.raises(Refusal) as refused, Archive(path, OPTIONS) as archive:
        archive.read(read or "")
        if read is None:
            pytest.fail("not refused")
    return refused.value.code


def test_an_honest_archive_is_read(tmp_path: Path) -> None:
    with Archive(zipped(tmp_path / "a", {"x": b"abc" * 100}), OPTIONS) as archive:
        assert archive.read("x") == b"abc" * 100
        assert archive.read("missing") == b""


def test_a_highly_packed_entry_is_a_bomb(tmp_path: Path) -> None:
    assert code_of(zipped(tmp_path / "a", {"x": bytes(10_000_000)})) == "decompression-bomb"


def test_many_entries_add_up(tmp_path: Path) -> None:
    entries = {f"{n}": (f"{n} " * 300_000).encode() for n in range(100, 130)}
    assert code_of(zipped(tmp_path / "a", entries)) == "decompression-bomb"


def test_an_entry_that_is_larger_than_it_says_is_caught(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a", {"x": b"abcdef" * 1000})
    data = bytearray(path.read_bytes())
    lie = struct.pack("<L", 50)
    local = data.index(b"PK\x03\x04") + 22
    central = data.index(b"PK\x01\x02") + 24
    data[local : local + 4] = data[central : central + 4] = lie
    path.write_bytes(data)
    assert code_of(path, "x") in {"decompression-bomb", "corrupt-document"}


def test_entries_that_share_bytes_are_a_bomb(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", b"x" * 1000)
        archive.writestr("b", b"y" * 1000)
    data = bytearray(buffer.getvalue())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    data[second + 42 : second + 46] = struct.pack("<L", 10)
    (tmp_path / "a").write_bytes(data)
    assert code_of(tmp_path / "a") == "decompression-bomb"


@pytest.mark.parametrize("cut", [10, 200, 300])
def test_a_truncated_archive_is_corrupt(tmp_path: Path, cut: int) -> None:
    path = zipped(tmp_path / "a", {"x": bytes(range(256)) * 4})
    path.write_bytes(path.read_bytes()[:cut])
    assert code_of(path) == "corrupt-document"


def test_an_encrypted_office_file_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(OLE_MAGIC + bytes(600))
    assert code_of(tmp_path / "a") == "encrypted-document"


def test_separators_of_windows_part_folders(tmp_path: Path) -> None:
    with Archive(zipped(tmp_path / "a", {"xl\\b\\c.xml": b"abc"}), OPTIONS) as archive:
        assert archive.names == ["xl/b/c.xml"]
        assert archive.read("xl/b/c.xml") == b"abc"


def test_upper_and_lower_case_mean_the_same_entry(tmp_path: Path) -> None:
    entries = {"xl/SharedStrings.xml": b"1", "A": b"2", "a": b"3"}
    with Archive(zipped(tmp_path / "a", entries), OPTIONS) as archive:
        assert archive.actual("xl/sharedStrings.xml") == "xl/SharedStrings.xml"
        assert [archive.actual(name) for name in ("A", "a", "b")] == ["A", "a", "b"]
