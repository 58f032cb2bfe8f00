"""A project in a signed file: here, there, twice, changed, and after both went on."""

import asyncio
import hashlib
import io
import json
import secrets
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from contracts.events import ProjectImported
from kernel.bundle import MANIFEST, SIGNATURE, Exported, _Export, export
from kernel.bundle_check import Bundle
from kernel.db import connect
from kernel.erasure import is_live
from kernel.errors import Refusal
from kernel.importing import Imported, _Import, bring_in
from kernel.signing import Keys, is_signed
from tests.conftest import on_database
from tests.integration.small_base import MODEL, Installation, SmallBase, day


@pytest.fixture
async def here(database: str, tmp_path: Path) -> Installation:
    return Installation(database, tmp_path / "here")


@pytest.fixture
async def base(here: Installation) -> AsyncIterator[SmallBase]:
    yield await here.open()
    await here.close()


@pytest.fixture
async def there(
    postgres_dsn: str, migrated_template: str, tmp_path: Path
) -> AsyncIterator[Installation]:
    """Another installation, empty."""
    name = f"test_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {migrated_template}")
    # A database made of a template has its key too.
    dsn = on_database(postgres_dsn, name)
    own = await asyncpg.connect(dsn)
    await own.execute("UPDATE log.identity SET key = decode(repeat('07', 32), 'hex')")
    await own.close()
    place = Installation(dsn, tmp_path / "there")
    yield place
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def other(there: Installation) -> AsyncIterator[SmallBase]:
    yield await there.open()
    await there.close()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "закон.kb"


async def write(place: Installation, file: Path, keys: Keys, **more: Any) -> Exported:
    return await export(place.dsn, place.blobs, more.pop("project", "default"), file, keys, **more)


async def read(file: Path, place: Installation) -> Imported:
    with Bundle(file) as bundle:
        bundle.signed_by()
        await bundle.check()
        return await bring_in(place.dsn, place.blobs, bundle, "test")


async def events_of(place: Installation) -> list[tuple[Any, ...]]:
    """What an event says, whenever and wherever it was recorded."""
    connection: Any = await connect(place.dsn)
    rows = await connection.fetch(
        "SELECT stream_id, version, event_id, type, schema_version, project, causation_id,"
        " correlation_id, actor, occurred_at, data::text FROM log.event ORDER BY stream_id, version"
    )
    await connection.close()
    return [tuple(r) for r in rows if r["type"] != "ProjectImported"]


async def test_a_project_goes_on_elsewhere_with_its_ids(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    for n, text in enumerate(("первый", "второй"), 1):
        old = await base.add(text, source="k", valid_from=day(n))
    await base.add("чужой", project="other")
    made = await write(here, file, keys, with_vectors=True)
    imported = await read(file, there)
    assert await events_of(there) == [e for e in await events_of(here) if e[5] == "default"]
    assert imported.events == made.manifest.events == await base.log.head() - 7
    assert {n: d for n, d in here.contents().items() if n in there.contents()} == there.contents()
    assert not there.holding("чужой")
    new = await other.add("третий", source="k", valid_from=day(3))
    assert new.document_id == old.document_id


async def test_vectors_come_along_and_nothing_is_embedded(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один")
    await base.add("два")
    rows = "SELECT * FROM cache.embedding ORDER BY 1, 2"
    assert (await write(here, file, keys)).manifest.vectors == ()
    assert (await write(here, file, keys, with_vectors=True)).manifest.vectors == (MODEL,)
    assert (await read(file, there)).vectors == 2
    assert await other.log.pool.fetch(rows) == await base.log.pool.fetch(rows)


async def test_twice_is_once(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один")
    await write(here, file, keys)
    first = await read(file, there)
    again = await read(file, there)
    assert (again.events, again.blobs, again.known) == (0, 0, first.events)
    assert again.position == first.position == await other.log.head()
    marks = [e.fact() for e in await other.log.read(0)]
    assert sum(isinstance(m, ProjectImported) for m in marks) == 1


async def test_a_newer_bundle_brings_what_is_new(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один", source="k", valid_from=day(1))
    await write(here, file, keys)
    await read(file, there)
    await base.add("два", source="k", valid_from=day(2))
    await base.add("новый")
    await write(here, file, keys)
    imported = await read(file, there)
    assert imported.known == 7
    assert imported.events == 15
    assert await events_of(there) == await events_of(here)


async def test_and_back_again(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один", source="k", valid_from=day(1))
    await write(here, file, keys)
    await read(file, there)
    await other.add("два", source="k", valid_from=day(2))
    await write(there, file, keys)
    await read(file, here)
    assert await events_of(here) == await events_of(there)
    assert here.contents() == there.contents()


async def test_two_lines_that_both_went_on_are_not_mixed(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один", source="k", valid_from=day(1))
    await write(here, file, keys)
    await read(file, there)
    await base.add("здесь", source="k", valid_from=day(2))
    await other.add("там", source="k", valid_from=day(2))
    await write(here, file, keys)
    assert await refusal(read(file, there)) == "diverged"
    assert not there.holding("здесь")


async def test_a_source_that_both_took_in_is_not_two_documents(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один")
    await write(here, file, keys)
    await read(file, there)
    await base.add("здесь", source="new")
    await other.add("там", source="new")
    await write(here, file, keys)
    assert await refusal(read(file, there)) == "diverged"


async def test_another_project_of_that_name_is_left_alone(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    await base.add("один")
    await other.add("другой")
    await write(here, file, keys)
    before = there.contents()
    assert await refusal(read(file, there)) == "project-exists"
    assert there.contents() == before


async def test_a_bundle_does_not_bring_back_what_was_erased_there(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    gone = await base.add("секрет")
    await base.add("остаётся")
    await write(here, file, keys)
    await read(file, there)
    await other.erase(gone)
    again = await read(file, there)
    assert (again.erased, again.events) == (1, 0)
    assert not there.holding("секрет")


async def test_what_was_erased_is_in_no_bundle(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    gone = await base.add("секрет")
    await base.add("остаётся")
    await base.erase(gone)
    await write(here, file, keys)
    await read(file, there)
    with zipfile.ZipFile(file) as bundle:
        assert not [n for n in bundle.namelist() if "секрет".encode() in bundle.read(n)]
    events = await other.log.streams([f"document-{gone.document_id}"])
    assert not is_live(gone.version_id, events)


async def test_an_erasure_during_the_export_is_in_the_bundle(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = await base.add("секрет")
    await base.add("остаётся")
    done: list[Any] = []
    real = _Export._copy

    async def copy(self: _Export, bundle: Any) -> None:
        if not done:
            done.append(gone)
            await base.erase(gone)
        await real(self, bundle)

    monkeypatch.setattr(_Export, "_copy", copy)
    made = await write(here, file, keys)
    await read(file, there)
    assert made.manifest.missing == ()
    assert (await other.log.streams([f"document-{gone.document_id}"]))[-1].type == "Erased"
    assert not there.holding("секрет")


async def test_what_a_killed_import_left_is_finished(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in range(5):
        await base.add(f"текст {n}")
    await write(here, file, keys)
    monkeypatch.setattr("kernel.importing.BATCH", 7)
    done = 0

    async def killed(self: Any, batch: Any) -> int:
        nonlocal done
        done += 1
        if done == 3:
            raise KeyboardInterrupt
        return await real(self, batch)

    real = _Import._append
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_Import, "_append", killed)
        await read(file, there)
    assert await other.log.head() == 14  # two documents, whole
    assert (await read(file, there)).known == 14
    assert await events_of(there) == await events_of(here)


async def test_a_document_is_there_with_all_that_was_made_of_it(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    """Whoever reads the log while it grows never sees a receipt without its reactions."""
    for n in range(30):
        await base.add(f"текст {n}")
    await write(here, file, keys)
    stop, seen = asyncio.Event(), set[int]()

    async def look() -> None:
        while not stop.is_set():
            seen.add(await other.log.head() % 7)
            await asyncio.sleep(0)

    task = asyncio.create_task(look())
    await read(file, there)
    stop.set()
    await task
    assert seen <= {0, 1}  # 1: with ProjectImported at the end


async def test_missing_bytes_are_told_and_never_left_out_silently(
    here: Installation,
    base: SmallBase,
    there: Installation,
    other: SmallBase,
    keys: Keys,
    file: Path,
) -> None:
    lost = await base.add("один")
    await base.blobs.delete(lost.source_id)
    assert await refusal(write(here, file, keys)) == "missing-blobs"
    assert not file.exists()
    made = await write(here, file, keys, without_missing=True)
    assert made.manifest.missing == (lost.source_id,)
    assert (await read(file, there)).events == 7


async def test_changed_bytes_are_not_exported(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    added = await base.add("один")
    async with base.blobs.local_path(added.source_id) as path:
        path.chmod(0o600)
        path.write_bytes(b"changed")
    assert await refusal(write(here, file, keys)) == "damaged-blob"
    assert not list(file.parent.glob(".*"))


async def test_there_is_no_such_project(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    assert await refusal(write(here, file, keys, project="none")) == "unknown-project"


# -- hostile files ------------------------------------------------------------------------------

Change = Callable[[dict[str, bytes]], object]


def repacked(file: Path, change: Change, keys: Keys | None = None) -> None:
    """The same bundle with other members; signed anew where there are keys."""
    with zipfile.ZipFile(file) as bundle:
        members = {n: bundle.read(n) for n in bundle.namelist()}
    change(members)
    if keys is not None:
        manifest = json.loads(members[MANIFEST])
        for name, data in members.items():
            if name not in (MANIFEST, SIGNATURE):
                digest = hashlib.sha256(data).hexdigest()
                manifest["members"][name] = {"bytes": len(data), "sha256": digest}
        manifest["members"] = {n: m for n, m in manifest["members"].items() if n in members}
        manifest["events"] = members["log.jsonl"].count(b"\n")
        members[MANIFEST] = json.dumps(manifest).encode()
        key, signature = keys.sign(members[MANIFEST])
        members[SIGNATURE] = json.dumps({"key": key, "signature": signature}).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)


def rows(change: Callable[[list[dict[str, Any]]], Any]) -> Change:
    """A change of the events."""

    def changed(members: dict[str, bytes]) -> None:
        found = [json.loads(line) for line in members["log.jsonl"].splitlines()]
        change(found)
        lines = [json.dumps(r, ensure_ascii=False) + "\n" for r in found]
        members["log.jsonl"] = "".join(lines).encode()

    return changed


def blob(members: dict[str, bytes]) -> str:
    return next(n for n in members if n.startswith("blobs/"))


UNSIGNED: dict[str, tuple[Change, str]] = {
    "a blob": (lambda m: m.update({blob(m): b"other"}), "changed-bundle"),
    "a blob is gone": (lambda m: m.pop(blob(m)), "changed-bundle"),
    "one more": (lambda m: m.update({f"blobs/{'0' * 64}": b"x"}), "changed-bundle"),
    "a path": (lambda m: m.update({"../../etc/passwd": b"x"}), "changed-bundle"),
    "the log": (lambda m: m.update({"log.jsonl": b""}), "changed-bundle"),
    "the manifest": (lambda m: m.update({MANIFEST: m[MANIFEST] + b" "}), "changed-bundle"),
    "no signature": (lambda m: m.pop(SIGNATURE), "unsigned-bundle"),
    "half a signature": (lambda m: m.update({SIGNATURE: b'{"key": "x"}'}), "unsigned-bundle"),
    "no key": (lambda m: m.update({SIGNATURE: b'{"key":"x","signature":"y"}'}), "changed-bundle"),
    "no manifest": (lambda m: m.pop(MANIFEST), "no-bundle"),
}


async def test_a_bundle_that_was_changed_is_refused(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    await base.add("один")
    await write(here, file, keys)
    assert await told(file, UNSIGNED) == {what: code for what, (_, code) in UNSIGNED.items()}


async def told(file: Path, changes: dict[str, tuple[Change, str]], keys: Any = None) -> Any:
    """What the check says of each changed bundle; it is made before anything is written."""
    whole, found = file.read_bytes(), {}
    for what, (change, _) in changes.items():
        file.write_bytes(whole)
        repacked(file, change, keys)
        found[what] = await refusal(checked(file))
    file.write_bytes(whole)
    await checked(file)
    return found


async def checked(file: Path) -> None:
    with Bundle(file) as bundle:
        bundle.signed_by()
        await bundle.check()


SIGNED: dict[str, tuple[Change, str]] = {
    "an event of another project": (rows(lambda r: r[0].update(project="other")), "changed-bundle"),
    "an event twice": (rows(lambda r: r.append(r[-1])), "changed-bundle"),
    "an event is missing": (rows(lambda r: r.pop(2)), "changed-bundle"),
    "another order": (rows(lambda r: r.reverse()), "changed-bundle"),
    "other data": (
        rows(lambda r: r[0].update(data=r[0]["data"].replace("право", "лево"))),
        "changed-bundle",
    ),
    "another stream": (rows(lambda r: r[0].update(stream_id="document-x")), "changed-bundle"),
    "another actor": (rows(lambda r: r[0].update(actor="root")), "changed-bundle"),
    "data that are none": (rows(lambda r: r[0].update(data="[]")), "changed-bundle"),
    "a type of the future": (rows(lambda r: r[0].update(type="Dreamt")), "changed-bundle"),
    "a column more": (rows(lambda r: r[0].update(more=1)), "changed-bundle"),
    "no blob for an event": (lambda m: m.pop(blob(m)), "changed-bundle"),
    "a blob for no event": (
        lambda m: m.update({
            "blobs/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881": b"x"
        }),
        "changed-bundle",
    ),
    "a blob under another name": (lambda m: m.update({blob(m): b"other"}), "changed-bundle"),
    "vectors that do not fit": (
        lambda m: m.update({n: m[n][:-1] for n in m if n.startswith("vectors/")}),
        "changed-bundle",
    ),
    "vectors that are no numbers": (
        lambda m: m.update({n: b"\xff" * len(m[n]) for n in m if n.startswith("vectors/")}),
        "changed-bundle",
    ),
    "vectors of no passages": (
        lambda m: m.update({f"vectors/m/{'0' * 64}": b"1234"}),
        "changed-bundle",
    ),
    "a path": (lambda m: m.update({"../../etc/passwd": b"x"}), "no-bundle"),
    "a name that is none": (lambda m: m.update({"blobs/x": b"x"}), "no-bundle"),
}  # fmt: skip


async def test_a_signer_is_not_believed_in_what_cannot_be(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    await base.add("один")
    await write(here, file, keys, with_vectors=True)
    assert await told(file, SIGNED, keys) == {what: code for what, (_, code) in SIGNED.items()}


async def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    for n, data in enumerate((b"", b"PK\x03\x04 half", b"%PDF-1.7", b"\x00" * 4096)):
        (tmp_path / f"{n}").write_bytes(data)
        assert await refusal(checked(tmp_path / f"{n}")) == "no-bundle"


async def test_a_name_twice_in_the_zip_is_refused(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    await base.add("один")
    await write(here, file, keys)
    with zipfile.ZipFile(file, "a") as bundle, pytest.warns(UserWarning, match="Duplicate"):
        bundle.writestr("log.jsonl", b"another")
    assert await refusal(checked(file)) == "changed-bundle"


async def test_no_more_is_unpacked_than_the_manifest_says(
    here: Installation, base: SmallBase, keys: Keys, file: Path
) -> None:
    """A bomb: the zip's own directory says the right length, the packed bytes are many more."""
    await base.add("один")
    await write(here, file, keys)
    with zipfile.ZipFile(file) as bundle:
        members = {n: bundle.read(n) for n in bundle.namelist()}
    name = blob(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for member, data in members.items():
            bundle.writestr(member, b"\0" * 300_000_000 if member == name else data)
        bundle.getinfo(name).file_size = len(members[name])
    file.write_bytes(out.getvalue())
    assert await refusal(checked(file)) == "changed-bundle"


def test_a_signature_is_of_these_bytes_and_this_key(tmp_path: Path) -> None:
    a, b = Keys(tmp_path / "a"), Keys(tmp_path / "b")
    key, signature = a.sign(b"text")
    assert is_signed(b"text", key, signature)
    assert not is_signed(b"texT", key, signature)
    assert not is_signed(b"text", b.sign(b"text")[0], signature)
    assert a.trusted() == {key}
    assert key not in b.trusted()
    b.trust(key)
    b.trust(key)
    assert key in b.trusted()
    assert (tmp_path / "a" / "bundles.pem").stat().st_mode & 0o777 == 0o600
    assert a.sign(b"x")[0] == key
    with pytest.raises(Refusal):
        a.trust("no key")


async def refusal(work: Any) -> str:
    with pytest.raises(Refusal) as refused:
        await work
    return refused.value.code
