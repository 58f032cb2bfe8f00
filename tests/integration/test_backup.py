"""A backup is one position of everything; a restore gives it back, and nothing that was erased."""

import asyncio
import gzip
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kernel import backup as backup_module
from kernel.backup import backup, forget, verify
from kernel.blobs import Blobs
from kernel.db import connect
from kernel.errors import Refusal
from kernel.repository import Gzipped, Repository
from kernel.restore import Restored, restore
from tests.conftest import on_database
from tests.integration.small_base import MODEL, Installation, SmallBase, day


async def content_of(place: Installation) -> dict[str, Any]:
    """All that must be the same after a restore."""
    connection: Any = await connect(place.dsn)
    try:
        log = [tuple(r) for r in await connection.fetch("SELECT * FROM log.event ORDER BY 1")]
        head = tuple(await connection.fetchrow("SELECT * FROM log.head"))
        key = await connection.fetchval("SELECT key FROM log.identity")
        accounts = [tuple(r) for r in await connection.fetch("SELECT * FROM auth.account")]
    finally:
        await connection.close()
    blobs = place.contents()
    return {"log": log, "head": head, "key": key, "accounts": accounts, "blobs": blobs}


@pytest.fixture
async def place(database: str, tmp_path: Path) -> AsyncIterator[Installation]:
    made = Installation(database, tmp_path / "blobs")
    yield made


@pytest.fixture
async def base(place: Installation) -> AsyncIterator[SmallBase]:
    yield await place.open()
    await place.close()


@pytest.fixture
async def elsewhere(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Installation]:
    """An empty database and no blobs."""
    name = f"test_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(f"CREATE DATABASE {name}")
    yield Installation(on_database(postgres_dsn, name), tmp_path / "elsewhere")
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "backups")


async def bring_back(
    repository: Repository, to: Installation, at: str | None = None, **more: Any
) -> Restored:
    return await restore(to.dsn, to.blobs, repository, repository.choose(at), **more)


async def test_everything_is_as_it_was(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    await base.log.pool.execute(
        "INSERT INTO auth.account (name, password_hash, role) VALUES ('a', 'x', 'admin')"
    )
    for n, text in enumerate(("первый", "второй", "первый и второй"), 1):
        await base.add(text, source="k", valid_from=day(n))
    await base.receive("half-way")
    before = await content_of(place)
    made = await backup(place.dsn, place.blobs, repository, with_vectors=True)
    shutil.rmtree(place.folder)  # all is lost
    restored = await bring_back(repository, elsewhere)
    assert await content_of(elsewhere) == before
    assert made.manifest.missing == made.manifest.damaged == ()
    assert (restored.position, restored.events) == (len(before["log"]), len(before["log"]))
    assert restored.accounts
    assert restored.faults == 0
    cached = await asyncpg.connect(elsewhere.dsn)
    rows = await cached.fetch("SELECT embedder, vector FROM cache.embedding")
    await cached.close()
    assert {r["embedder"] for r in rows} == {MODEL}
    assert len(rows) == restored.vectors == 3


async def test_the_log_goes_on_where_it_ended(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    old = await base.add("старый", source="k")
    await backup(place.dsn, place.blobs, repository)
    await bring_back(repository, elsewhere)
    again = await elsewhere.open()
    new = await again.add("новый", source="k")
    await elsewhere.close()
    assert new.document_id == old.document_id


async def test_a_second_backup_copies_only_what_is_new(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    await base.add("one")
    first = await backup(place.dsn, place.blobs, repository)
    await base.add("two")
    second = await backup(place.dsn, place.blobs, repository)
    assert first.copied == 7  # source and parse, body and meta, spans, cut and summary
    assert second.copied == 6  # the meta is the same
    assert second.manifest.blobs.count == 13
    await bring_back(repository, elsewhere, at=first.manifest.id)
    assert len((await content_of(elsewhere))["blobs"]) == 7


async def test_backups_are_found_by_time_and_id(
    place: Installation, base: SmallBase, repository: Repository
) -> None:
    await base.add("one")
    first = (await backup(place.dsn, place.blobs, repository)).manifest
    await base.add("two")
    second = (await backup(place.dsn, place.blobs, repository)).manifest
    assert repository.choose(None).id == second.id
    assert repository.choose(first.id) == first
    assert repository.choose(first.created_at.isoformat()) == first
    assert repository.choose(f"{second.created_at:%Y-%m-%d}") == second
    for at, code in (("2001-01-01", "unknown-backup"), ("yesterday", "unknown-backup")):
        with pytest.raises(Refusal) as refused:
            repository.choose(at)
        assert refused.value.code == code


async def test_what_was_erased_later_does_not_come_back(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    gone, stays = await base.add("секрет"), await base.add("остаётся")
    old = (await backup(place.dsn, place.blobs, repository)).manifest
    await base.erase(gone)
    made = await backup(place.dsn, place.blobs, repository)
    assert made.erased == 6  # the meta is needed by the other one
    restored = await bring_back(repository, elsewhere, at=old.id)
    assert restored.erased == 1
    content = await content_of(elsewhere)
    assert not elsewhere.holding("секрет")
    assert stays.source_id in content["blobs"]
    assert content["log"][-1][4] == "Erased"
    assert not list(_containing(repository.root / "blobs", "секрет"))


async def test_an_erasure_reaches_the_folder_at_once(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    gone = await base.add("секрет")
    old = (await backup(place.dsn, place.blobs, repository, with_vectors=True)).manifest
    await base.erase(gone)
    cuts = [e.data["chunks_sha256"] for e in await base.log.read(0) if e.type == "Chunked"]
    erased = [e for e in await base.log.read(0) if e.type == "Erased"]
    assert (
        await forget(
            repository.root, tombstones=erased, blobs=[gone.source_id, *cuts], people=["p"]
        )
        == 2
    )
    await forget(repository.root, tombstones=erased, people=["p"])
    assert len(repository.tombstones_file.read_text().splitlines()) == 3
    assert not [p for p in (repository.root / "vectors").rglob("*") if p.is_file()]
    assert (await bring_back(repository, elsewhere, at=old.id)).erased == 1
    assert (await verify(repository, old)).ok


async def test_a_folder_that_does_not_exist_hears_nothing_of_an_erasure(tmp_path: Path) -> None:
    assert await forget(tmp_path / "none", people=["p"]) == 0
    assert not (tmp_path / "none").exists()


async def test_people_who_were_erased_do_not_come_back(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    actor = await base.log.pool.fetchval(
        "INSERT INTO auth.account (name, password_hash, role) VALUES ('a', 'x', 'admin')"
        " RETURNING actor_id"
    )
    await backup(place.dsn, place.blobs, repository)
    await forget(repository.root, people=[str(actor)])
    restored = await bring_back(repository, elsewhere)
    assert not restored.accounts


async def test_names_and_people_leave_the_older_backups(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    gone = await base.add("секрет", name="Иванов.md", source="дело Иванова")
    await base.add("остаётся", name="Петров.md")
    actor = await base.log.pool.fetchval(
        "INSERT INTO auth.account (name, password_hash, role) VALUES ('ivanov', 'x', 'admin')"
        " RETURNING actor_id"
    )
    old = (await backup(place.dsn, place.blobs, repository)).manifest
    assert words(repository, old.id) == {"Иванов", "Петров", "ivanov"}
    await base.erase(gone)
    redact = "SELECT log.redact($1, $2)"
    assert await base.log.pool.fetchval(redact, gone.document_id, gone.version_id) == 1
    await base.log.pool.execute("DELETE FROM auth.account")
    await forget(repository.root, people=[str(actor)])
    await backup(place.dsn, place.blobs, repository)
    assert words(repository, old.id) == {"Петров"}
    assert (await verify(repository, repository.manifest(old.id))).ok
    restored = await bring_back(repository, elsewhere, at=old.id)
    assert (restored.erased, restored.accounts, restored.faults) == (1, False, 0)
    here, there = await content_of(place), await content_of(elsewhere)
    assert there["log"][:14] == here["log"][:14]
    untouched = (repository.backups / old.id / "manifest.json").stat().st_mtime_ns
    await base.receive("x")
    await backup(place.dsn, place.blobs, repository)
    assert (repository.backups / old.id / "manifest.json").stat().st_mtime_ns == untouched


def words(repository: Repository, id_: str) -> set[str]:
    """Which of some names stand in any file of a backup."""
    files = [p for p in (repository.backups / id_).iterdir() if p.suffix == ".gz"]
    text = b"".join(gzip.decompress(p.read_bytes()) for p in files).decode()
    return {name for name in ("Иванов", "Петров", "ivanov") if name in text}


async def test_what_was_sent_again_after_its_erasure_is_restored(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    first = await base.add("ещё раз", source="k")
    await backup(place.dsn, place.blobs, repository)
    await base.erase(first)
    await base.add("ещё раз", source="k")
    made = await backup(place.dsn, place.blobs, repository)
    restored = await bring_back(repository, elsewhere)
    assert (made.erased, restored.erased) == (0, 0)
    assert first.source_id in (await content_of(elsewhere))["blobs"]


async def test_an_erasure_during_the_backup_is_no_loss(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    gone = await base.add("секрет")
    await base.add("остаётся")
    whole = Blobs.put_parts
    done: list[str] = []

    async def put_parts(self: Blobs, parts: Any) -> str:
        name = await whole(self, parts)
        if not done:
            done.append(name)
            await base.erase(gone)
        return name

    monkeypatch.setattr(Blobs, "put_parts", put_parts)
    made = await backup(place.dsn, place.blobs, repository)
    assert made.manifest.missing == ()
    assert not list(_containing(repository.root / "blobs", "секрет"))
    restored = await bring_back(repository, elsewhere)
    assert restored.erased == 1
    assert not elsewhere.holding("секрет")


async def test_a_backup_is_one_moment_while_documents_come_in(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    stop = asyncio.Event()

    async def writing() -> int:
        n = 0
        while not stop.is_set():
            await base.add(f"текст {n}", source=f"k{n % 3}")
            n += 1
        return n

    writer = asyncio.create_task(writing())
    while await base.log.head() < 30:
        await asyncio.sleep(0.01)
    made = (await backup(place.dsn, place.blobs, repository)).manifest
    stop.set()
    assert await writer > 3
    assert made.missing == ()
    await bring_back(repository, elsewhere)
    here, there = await content_of(place), await content_of(elsewhere)
    assert there["log"] == here["log"][: made.position]
    assert there["head"][1] == made.position


async def test_a_lost_blob_is_told_and_the_rest_is_kept(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    a, b = await base.add("one"), await base.add("two")
    await base.blobs.delete(a.source_id)
    async with base.blobs.local_path(b.source_id) as path:
        path.chmod(0o600)
        path.write_bytes(b"changed")
    manifest = (await backup(place.dsn, place.blobs, repository)).manifest
    assert (manifest.missing, manifest.damaged) == ((a.source_id,), (b.source_id,))
    restored = await bring_back(repository, elsewhere)
    assert restored.left_out == ()


async def test_a_blob_that_is_damaged_in_the_backup_is_found(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    a = await base.add("one")
    manifest = (await backup(place.dsn, place.blobs, repository)).manifest
    async with repository.blobs.local_path(a.source_id) as path:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().swapcase())
    with pytest.raises(Refusal) as refused:
        await bring_back(repository, elsewhere)
    assert refused.value.code == "damaged-blobs"
    shutil.rmtree(elsewhere.folder)
    elsewhere.folder.mkdir()
    restored = await bring_back(repository, elsewhere, without_damaged=True)
    assert restored.left_out == (a.source_id,)
    checked = await verify(repository, manifest)
    assert checked.damaged == (a.source_id,)
    await base.receive("x")
    assert (await backup(place.dsn, place.blobs, repository)).copied == 2  # set aside: brought anew


@pytest.mark.parametrize("file", ["manifest.json", "log.event.copy.gz", "blobs.txt.gz"])
@pytest.mark.parametrize("how", ["cut", "gone", "changed"])
async def test_a_torn_backup_is_refused_before_anything_is_written(
    file: str,
    how: str,
    place: Installation,
    base: SmallBase,
    elsewhere: Installation,
    repository: Repository,
) -> None:
    await base.add("one")
    manifest = (await backup(place.dsn, place.blobs, repository)).manifest
    path = repository.backups / manifest.id / file
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            data[: len(data) // 2] + (b"" if how == "cut" else data[len(data) // 2 :][::-1])
        )
    with pytest.raises(Refusal) as refused:
        await bring_back(repository, elsewhere)
    assert refused.value.code == "torn-backup"
    assert not [p for p in elsewhere.folder.rglob("*") if p.is_file()]
    with pytest.raises(asyncpg.UndefinedTableError):
        await content_of(elsewhere)


async def test_only_an_empty_installation_is_restored_into(
    place: Installation, base: SmallBase, repository: Repository
) -> None:
    await base.add("one")
    await backup(place.dsn, place.blobs, repository)
    with pytest.raises(Refusal) as refused:
        await bring_back(repository, place)
    assert refused.value.code == "not-empty"


async def test_another_installation_is_not_mixed_in(
    place: Installation, base: SmallBase, repository: Repository
) -> None:
    await base.add("one")
    await backup(place.dsn, place.blobs, repository)
    await base.add("two")
    await base.log.pool.execute("UPDATE log.identity SET key = decode(repeat('00', 32), 'hex')")
    with pytest.raises(Refusal) as refused:
        await backup(place.dsn, place.blobs, repository)
    assert refused.value.code == "other-installation"


async def test_a_wrong_folder_is_refused(
    place: Installation, base: SmallBase, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
    with pytest.raises(Refusal) as refused:
        await backup(place.dsn, place.blobs, Repository(tmp_path / "photos"))
    assert refused.value.code == "no-backups"
    assert [p.name for p in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
    with pytest.raises(Refusal) as refused:
        Repository(tmp_path / "nowhere").choose(None)
    assert refused.value.code == "no-backups"


async def test_a_full_disk_leaves_the_backups_before(
    place: Installation, base: SmallBase, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    await base.add("one")
    first = (await backup(place.dsn, place.blobs, repository)).manifest
    await base.add("two")
    with monkeypatch.context() as patch:
        patch.setattr(backup_module, "_listing", _full)
        with pytest.raises(OSError, match="space"):
            await backup(place.dsn, place.blobs, repository)
    assert [p.name for p in repository.backups.iterdir()] == [first.id]
    assert (await verify(repository, first)).ok
    assert len((await _again(place, repository)).ids()) == 2


async def test_a_killed_backup_leaves_nothing_that_counts(
    place: Installation, base: SmallBase, repository: Repository
) -> None:
    await base.add("one")
    repository.create()
    (repository.partial("20200101T000000Z-1") / "log.event.copy.gz").write_bytes(b"half")
    (repository.root / "blobs" / "tmp").mkdir(parents=True)
    (repository.root / "blobs" / "tmp" / "half").write_bytes(b"half a blob")
    with pytest.raises(Refusal):
        repository.choose(None)
    await _again(place, repository)
    assert [p.name for p in repository.backups.iterdir()] == repository.ids()
    assert not list((repository.root / "blobs" / "tmp").iterdir())


async def test_two_backups_at_once_do_not_mix(
    place: Installation, base: SmallBase, repository: Repository
) -> None:
    await base.add("one")
    repository.create()
    with repository.alone(), pytest.raises(Refusal) as refused:
        await backup(place.dsn, place.blobs, repository)
    assert refused.value.code == "backup-running"


async def test_a_torn_line_of_the_tombstones_costs_no_other(repository: Repository) -> None:
    repository.create()
    repository.bury([{"event_id": "a", "data": {}}])
    with repository.tombstones_file.open("a") as file:
        file.write('{"event_id": "b", "da')
    repository.bury([{"event_id": "c", "data": {}}])
    assert list(repository.tombstones()) == ["a", "c"]


async def test_a_backup_of_an_earlier_version_is_migrated(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    """The schema of before the hash chain: its rows get their links after they are restored."""
    await base.add("one")
    made = (await backup(place.dsn, place.blobs, repository)).manifest
    before = await content_of(place)
    new = {"salt", "digest", "chain", "redacted_at", "fingerprint"}
    partial = repository.partial("old")
    tables = []
    for table in made.tables:
        if table.name not in ("event", "head", "identity", "account"):
            continue
        columns = [c for c in table.columns if c not in new]
        columns = [c for c in columns if (table.name, c) != ("head", "recorded_at")]
        with Gzipped(partial / table.file) as out:
            await base.log.pool.copy_from_table(
                table.name, schema_name=table.schema_name, columns=columns, output=out.feed
            )
        part = out.part.model_dump()
        tables.append(table.model_copy(update=part | {"columns": tuple(columns)}))
    shutil.copy(repository.backups / made.id / "blobs.txt.gz", partial)
    old = {"id": "old", "tables": tuple(tables)}
    old["migrations"] = tuple(m for m in made.migrations if m[0] < "0009")
    repository.finish(partial, made.model_copy(update=old))
    await bring_back(repository, elsewhere, at="old")
    after = await content_of(elsewhere)
    assert [r[:15] for r in after["log"]] == [r[:15] for r in before["log"]]
    assert after["log"][0][15:18] != before["log"][0][15:18]  # another salt
    assert after["head"][2] not in (before["head"][2], bytes(32))


async def test_a_log_that_is_not_the_one_of_the_manifest_is_told(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    await base.add("one")
    made = (await backup(place.dsn, place.blobs, repository)).manifest
    other = made.model_copy(update={"fingerprint": "0" * 64})
    restored = await restore(elsewhere.dsn, elsewhere.blobs, repository, other)
    assert restored.faults == 1


async def test_a_backup_of_a_newer_version_is_refused(
    place: Installation, base: SmallBase, elsewhere: Installation, repository: Repository
) -> None:
    made = (await backup(place.dsn, place.blobs, repository)).manifest
    newer = made.model_copy(update={"migrations": (*made.migrations, ("9999_next.sql", "0" * 64))})
    with pytest.raises(Refusal) as refused:
        await restore(elsewhere.dsn, elsewhere.blobs, repository, newer)
    assert refused.value.code == "newer-backup"


def _containing(folder: Path, text: str) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]


def _full(*_: object) -> Any:
    raise OSError(28, "No space left on device")


async def _again(place: Installation, repository: Repository) -> Repository:
    await backup(place.dsn, place.blobs, repository)
    return repository
