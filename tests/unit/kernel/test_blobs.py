"""The blob store: content-addressed, never half a blob. The fake passes the same tests."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kernel import blobs as blobs_module
from kernel.blobs import HEAD_BYTES, Blobs, sha256, sha256_of
from kernel.cache import ParseCache
from kernel.errors import Refusal
from kernel.testing import MemoryBlobs, MemoryParseCache


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return Blobs(str(tmp_path / "blobs")) if request.param == "folder" else MemoryBlobs()


async def test_bytes_are_found_under_their_hash(blobs: Any) -> None:
    data = "Члан 5".encode()
    name = await blobs.put(data)
    assert name == sha256(data)
    assert await blobs.get(name) == data
    assert await blobs.exists(name)
    async with blobs.local_path(name) as path:
        assert path.read_bytes() == data


async def test_the_digest_of_a_blob_is_its_name(blobs: Any) -> None:
    data = "Члан 5".encode() * 500_000
    name = await blobs.put(data)
    assert await blobs.digest(name) == name
    with pytest.raises(FileNotFoundError):
        await blobs.digest(sha256(b"never"))


async def test_the_digest_of_bytes_that_somebody_changed_is_another(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path))
    name = await blobs.put(b"abc")
    async with blobs.local_path(name) as path:
        path.write_bytes(b"abd")
    assert await blobs.digest(name) == sha256(b"abd")


async def test_the_same_bytes_twice_are_one_blob(blobs: Any) -> None:
    assert await blobs.put(b"a") == await blobs.put(b"a")


async def test_a_blob_that_is_not_there_is_said_to_be_missing(blobs: Any) -> None:
    name = sha256(b"never")
    assert not await blobs.exists(name)
    assert not await blobs.delete(name)
    with pytest.raises(FileNotFoundError):
        await blobs.get(name)
    with pytest.raises(FileNotFoundError):
        async with blobs.local_path(name):
            pass


async def test_a_deleted_blob_is_gone(blobs: Any) -> None:
    name = await blobs.put(b"a")
    assert await blobs.delete(name)
    assert not await blobs.exists(name)


@pytest.mark.parametrize("sizes", [[], [0], [3], [5, 0, 9], [1] * 40, [50, 1, 50]])
async def test_parts_are_stored_as_one(
    blobs: Any, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs_module, "PIECE_BYTES", 16)
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    data = b"".join(parts)
    for _ in range(2):
        name = await blobs.put_parts(iter(parts))
        assert name == sha256(data) == sha256_of(parts)
        assert await blobs.get(name) == data
        assert await blobs.size(name) == len(data)
    assert await blobs.put(data) == name


async def test_of_parts_that_fail_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs_module, "PIECE_BYTES", 16)

    def parts() -> Iterator[bytes]:
        yield b"x" * 100
        yield b"y" * 100
        raise Refusal("parse-crash", "no sense")

    with pytest.raises(Refusal):
        await Blobs(str(tmp_path / "blobs")).put_parts(parts())
    assert not [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def stream(blobs: Blobs, *parts: bytes, **options: Any) -> Any:
    async def confirm() -> None:
        if error := options.get("refuse"):
            raise error

    heads: list[bytes] = options.get("heads", [])
    return await blobs.put_stream(
        chunks(*parts), limit=options.get("limit", 1 << 20), check=heads.append, confirm=confirm
    )


@pytest.fixture
def folder(tmp_path: Path) -> Blobs:
    return Blobs(str(tmp_path))


def files(tmp_path: Path) -> list[str]:
    return [p.name for p in tmp_path.rglob("*") if p.is_file()]


async def test_a_stream_is_stored_under_the_hash_of_all_of_it(
    folder: Blobs, tmp_path: Path
) -> None:
    heads: list[bytes] = []
    stored = await stream(folder, b"ab", b"", b"cd", heads=heads)
    assert (stored.sha256, stored.size_bytes, stored.head) == (sha256(b"abcd"), 4, b"abcd")
    assert heads == [b"abcd"]
    assert files(tmp_path) == [stored.sha256]


async def test_the_first_bytes_are_seen_before_the_rest_is_taken(folder: Blobs) -> None:
    heads: list[bytes] = []
    stored = await stream(folder, b"x" * HEAD_BYTES, b"y" * 10, heads=heads)
    assert heads == [b"x" * HEAD_BYTES] == [stored.head]


@pytest.mark.parametrize(
    ("parts", "options", "code"),
    [
        ((), {}, "empty-document"),
        ((b"", b""), {}, "empty-document"),
        ((b"abc", b"d"), {"limit": 3}, "too-large"),
        ((b"abc",), {"refuse": Refusal("no", "no")}, "no"),
    ],
)
async def test_a_refused_stream_leaves_nothing(
    folder: Blobs, tmp_path: Path, parts: tuple[bytes, ...], options: dict[str, Any], code: str
) -> None:
    with pytest.raises(Refusal) as refused:
        await stream(folder, *parts, **options)
    assert refused.value.code == code
    assert files(tmp_path) == []


async def test_a_stream_that_breaks_off_leaves_nothing(folder: Blobs, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    async def confirm() -> None:
        """Never reached."""

    with pytest.raises(ConnectionResetError):
        await folder.put_stream(broken(), limit=99, check=lambda _: None, confirm=confirm)
    assert files(tmp_path) == []


async def test_what_a_killed_upload_left_is_swept_and_nothing_else(
    folder: Blobs, tmp_path: Path
) -> None:
    kept = await folder.put(b"a blob")
    left = tmp_path / "tmp" / "half"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    assert await folder.sweep() == 0  # it may still be growing
    assert await folder.sweep(older_than=timedelta(0)) == 1
    assert files(tmp_path) == [kept]


@pytest.mark.parametrize("kind", ["postgres", "memory"])
async def test_a_parse_is_remembered_until_it_is_dropped(kind: str, database: str) -> None:
    from kernel.db import pool

    db = await pool(database)
    cache: Any = ParseCache(db) if kind == "postgres" else MemoryParseCache()
    assert await cache.get("s", "p", "o") is None
    await cache.put("s", "p", "o", "a")
    await cache.put("s", "p", "o", "b")
    await cache.put("s", "p2", "o", "c")
    assert await cache.get("s", "p", "o") == "b"
    assert sorted(await cache.drop("s")) == ["b", "c"]
    assert await cache.get("s", "p", "o") is None
    db.terminate()


@pytest.mark.parametrize("wrong", [b"", b"other", b"the bytex", b"the bytes and more"])
async def test_what_was_changed_in_the_store_is_set_right_by_storing_it_again(
    tmp_path: Path, wrong: bytes
) -> None:
    folder = Blobs(str(tmp_path))
    name = await folder.put(b"the bytes")
    (tmp_path / name[:2] / name[2:4] / name).write_bytes(wrong)
    assert await folder.put(b"the bytes") == name
    assert await folder.get(name) == b"the bytes"
