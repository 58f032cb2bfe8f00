"""Blobs that no event names."""

from datetime import timedelta
from pathlib import Path

from contracts.artifacts import Attachment, BodyMeta, ParsedDocument
from contracts.events import Parsed
from kernel.blobs import Blobs, sha256
from kernel.db import pool
from kernel.log import Log
from kernel.sweep import sweep
from kernel.testing import first, received

META = BodyMeta(title="t", language="en", media_type="text/plain")


async def test_what_no_event_names_is_deleted_when_it_is_old(database: str, tmp_path: Path) -> None:
    db, blobs = await pool(database), Blobs(str(tmp_path))
    log = Log(db)
    inside = await blobs.put(b"a file inside")
    source = await blobs.put(b"the source")
    file = Attachment(name="x", sha256=inside, size_bytes=13)
    parse = ParsedDocument(markdown="text", meta=META, attachments=(file,))
    parsed = await blobs.put(parse.to_bytes())
    receipt = received("a.md", source_id=source)
    told = Parsed(**receipt.ids, parsed_sha256=parsed, parser="p", language="en", attachments=1)
    for event in (receipt, told):
        await log.append([first(event)])
    cached = await blobs.put(b"a parse by another parser")
    await db.execute("INSERT INTO cache.parse VALUES ($1, 'q', '', $2)", source, cached)
    orphan = await blobs.put("a body whose converter was killed, Тајна".encode())
    assert await sweep(database, blobs) == 0  # it may be named in a moment
    assert await sweep(database, blobs, timedelta(0)) == 1
    assert not await blobs.exists(orphan)
    left = {name async for name in blobs.names()}
    assert left == {inside, source, parsed, cached}
    assert await sweep(database, blobs, timedelta(0)) == 0
    db.terminate()


async def test_only_whole_blobs_are_listed(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path))
    name = await blobs.put(b"one")
    (tmp_path / "tmp").mkdir(exist_ok=True)
    (tmp_path / "tmp" / ("0" * 64)).write_bytes(b"half")
    (tmp_path / "README").write_bytes(b"not ours")
    assert [n async for n in blobs.names()] == [name] == [sha256(b"one")]
    assert [n async for n in blobs.names(timedelta(hours=1))] == []
