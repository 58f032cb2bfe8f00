"""The hash chain of the log: whoever changes it is found out, wherever it was."""

import asyncio
import hashlib
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from contracts.audit import Anchor, ChainPage
from contracts.events import Erased
from kernel import migrations
from kernel.chain import verify
from kernel.db import pool
from kernel.log import Log
from kernel.migrations import migrate
from kernel.testing import first, received
from tests.conftest import on_database

NAMES = ("Закон.md", "tab\tand \\ and \x7f.md", "\u2028 \U0001f600.md")


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    """Nine events of three streams, taking turns, one appended alone and two together."""
    db = await pool(database)
    log = Log(db)
    for _ in range(3):
        for name in NAMES:
            await log.append([first(received(name))])
    yield log
    db.terminate()


async def tamper(log: Log, *statements: str) -> None:
    """What somebody with every right does: triggers off, and constraints that would tell."""
    async with log.pool.acquire() as owner:
        await owner.execute("SET session_replication_role = replica")
        for statement in statements:
            await owner.execute(statement)
        await owner.execute("RESET session_replication_role")


def said(page: ChainPage) -> list[tuple[int, str]]:
    """`(position, code)` of each fault."""
    return [(f.position, f.code) for f in page.faults]


async def test_a_log_as_it_was_appended_is_whole(log: Log) -> None:
    page = await verify(log.pool)
    assert (page.faults, page.found, page.done) == ((), 0, True)
    assert (page.events, page.position, page.head) == (9, 9, 9)
    assert page.fingerprint == (await log.pool.fetchval("SELECT fingerprint FROM log.head")).hex()


async def test_an_empty_log_is_whole(database: str) -> None:
    db = await pool(database)
    page = await verify(db)
    assert (page.found, page.done, page.fingerprint) == (0, True, "00" * 32)
    db.terminate()


async def test_events_appended_together_are_linked_in_their_order(log: Log) -> None:
    await log.append([first(received("a.md")), first(received("a.md")), first(received("a.md"))])
    page = await verify(log.pool)
    assert (page.events, page.found) == (12, 0)


async def test_the_check_goes_on_from_page_to_page(log: Log) -> None:
    one = await verify(log.pool, limit=4)
    assert (one.position, one.events, one.done) == (4, 4, False)
    two = await verify(log.pool, after=4, fingerprint=one.fingerprint)
    assert (two.position, two.events, two.found, two.done) == (9, 5, 0, True)
    assert two.fingerprint == (await verify(log.pool)).fingerprint


async def test_from_a_position_on_the_links_are_checked_without_a_fingerprint(log: Log) -> None:
    await tamper(log, "UPDATE log.event SET actor = 'x' WHERE position IN (2, 7)")
    page = await verify(log.pool, after=4)
    assert (said(page), page.fingerprint) == ([(7, "link-broken")], None)


async def test_the_check_and_sql_alone_say_the_same(log: Log) -> None:
    """What the migration tells an outsider to compute."""
    (row, *_) = await log.pool.fetch(
        "SELECT *, data::text AS words FROM log.event ORDER BY position LIMIT 1"
    )
    digest = hashlib.sha256(row["salt"] + row["words"].encode()).digest()
    names = (
        "position", "stream_id", "version", "event_id", "type", "schema_version", "lane", "project",
        "causation_id", "correlation_id", "actor", "traceparent",
    )  # fmt: skip
    plain = [str(v) if n.endswith("_id") and v is not None else v for n in names for v in [row[n]]]
    times = [int(row[n].timestamp() * 1000) for n in ("occurred_at", "recorded_at")]
    header = await log.pool.fetchval(
        "SELECT convert_from(log.header(e), 'UTF8') FROM log.event e WHERE position = 1"
    )
    assert json.loads(header)[:12] == plain
    assert [n // 1000 for n in json.loads(header)[12:]] == times
    assert hashlib.sha256(bytes(32) + digest + header.encode()).digest() == row["chain"]


@pytest.mark.parametrize(
    "setting",
    ["timezone = 'Asia/Tokyo'", "extra_float_digits = 0", "datestyle = 'German'",
     "bytea_output = 'escape'", "intervalstyle = 'iso_8601'"],
)  # fmt: skip
async def test_settings_of_a_session_do_not_change_a_link(log: Log, setting: str) -> None:
    async with log.pool.acquire() as session:
        await session.execute(f"SET {setting}")
        await log._sql.append(
            session, stream_id="document-x", expected=-1, job=None,
            events=[first(received("x.md")).to_row()],
        )  # fmt: skip
        await session.execute(f"RESET {setting.split(maxsplit=1)[0]}")
    page = await verify(log.pool)
    assert (page.events, page.found) == (10, 0)


COLUMNS = {
    "stream_id": "'document-other'", "event_id": "gen_random_uuid()", "type": "'Failed'",
    "schema_version": "2", "lane": "'bulk'", "project": "'other'",
    "causation_id": "gen_random_uuid()", "correlation_id": "gen_random_uuid()", "actor": "'x'",
    "traceparent": "'x'", "occurred_at": "occurred_at + interval '1 microsecond'",
    "recorded_at": "recorded_at - interval '1 microsecond'", "version": "9",
    "digest": "sha256('x')", "chain": "sha256('x')",
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_changed_field_is_found_where_it_was_changed(log: Log, column: str) -> None:
    await tamper(log, f"UPDATE log.event SET {column} = {COLUMNS[column]} WHERE position = 5")
    page = await verify(log.pool)
    assert page.faults[0].position == 5
    assert page.faults[0].code in ("link-broken", "data-changed", "before-missing")


@pytest.mark.parametrize(
    "data",
    ["""data || '{"trusted": true}'""", "data - 'name'", """data || '{"more": 1}'""",
     """jsonb_set(data, '{size_bytes}', '10.0')"""],
)  # fmt: skip
async def test_changed_data_are_found(log: Log, data: str) -> None:
    await tamper(log, f"UPDATE log.event SET data = {data} WHERE position = 5")
    assert said(await verify(log.pool)) == [(5, "data-changed")]


async def test_data_changed_with_their_digest_break_the_link(log: Log) -> None:
    await tamper(
        log,
        "UPDATE log.event SET data = data - 'name' WHERE position = 5",
        "UPDATE log.event SET digest = log.digest(salt, data) WHERE position = 5",
    )
    assert said(await verify(log.pool)) == [(5, "link-broken")]


async def test_a_removed_event_is_found_and_what_followed_it(log: Log) -> None:
    await tamper(log, "DELETE FROM log.event WHERE position = 5")
    page = await verify(log.pool)
    assert said(page) == [(5, "missing"), (8, "before-missing"), (9, "fingerprint")]


async def test_a_removed_event_is_found_though_the_rest_is_numbered_anew(log: Log) -> None:
    await tamper(
        log,
        "DELETE FROM log.event WHERE position = 5",
        "UPDATE log.event SET position = position + 100 WHERE position > 5",
        "UPDATE log.event SET position = position - 101 WHERE position > 100",
        "UPDATE log.head SET position = 8",
    )
    assert (5, "link-broken") in said(await verify(log.pool))


async def test_two_swapped_events_are_found(log: Log) -> None:
    await tamper(
        log,
        "UPDATE log.event SET position = -1 WHERE position = 4",
        "UPDATE log.event SET position = 4 WHERE position = 5",
        "UPDATE log.event SET position = 5 WHERE position = -1",
    )
    assert said(await verify(log.pool))[:2] == [(4, "link-broken"), (5, "link-broken")]


async def test_a_cut_tail_is_found(log: Log) -> None:
    await tamper(log, "DELETE FROM log.event WHERE position > 6")
    assert said(await verify(log.pool)) == [(7, "tail-missing")]


async def test_a_cut_tail_is_found_though_the_head_was_moved(log: Log) -> None:
    await tamper(
        log,
        "DELETE FROM log.event WHERE position > 6",
        "UPDATE log.head SET position = 6",
    )
    assert said(await verify(log.pool)) == [(6, "fingerprint")]


async def test_a_cut_tail_is_found_from_a_position_behind_it(log: Log) -> None:
    known = await verify(log.pool)
    await tamper(
        log,
        "DELETE FROM log.event WHERE position > 6",
        "UPDATE log.head SET position = 6, fingerprint ="
        " (SELECT log.linked(chain ORDER BY position) FROM log.event)",
    )
    page = await verify(log.pool, after=9, fingerprint=known.fingerprint)
    assert said(page) == [(7, "tail-missing")]


async def test_a_removed_stream_is_found(log: Log) -> None:
    stream = received(NAMES[2]).stream_id
    await tamper(log, f"DELETE FROM log.event WHERE stream_id = '{stream}'")
    assert said(await verify(log.pool)) == [(3, "missing"), (6, "missing"), (9, "tail-missing")]


async def test_a_removed_stream_is_found_though_all_is_numbered_anew(log: Log) -> None:
    stream = received(NAMES[2]).stream_id
    await tamper(
        log,
        f"DELETE FROM log.event WHERE stream_id = '{stream}'",
        "UPDATE log.event SET position = position + 100",
        "UPDATE log.event e SET position = n.n FROM (SELECT position, row_number() OVER"
        " (ORDER BY position) AS n FROM log.event) n WHERE n.position = e.position",
        "UPDATE log.head SET position = 6",
    )
    assert (3, "link-broken") in said(await verify(log.pool))


FORGED = (
    "INSERT INTO log.event SELECT {position}, stream_id, {version}, gen_random_uuid(), type,"
    " schema_version, lane, project, causation_id, correlation_id, actor, traceparent, occurred_at,"
    " recorded_at, data, salt, digest, {chain}, NULL FROM log.event WHERE position = 9"
)


async def test_an_event_that_no_append_wrote_is_found(log: Log) -> None:
    forged = FORGED.format(position=10, version=4, chain="chain")
    await tamper(log, forged)
    assert (10, "not-appended") in said(await verify(log.pool))
    await tamper(log, "UPDATE log.head SET position = 10")
    assert (10, "link-broken") in said(await verify(log.pool))


async def test_a_forged_event_with_a_right_link_is_found_by_the_head(log: Log) -> None:
    forged = FORGED.format(position=10, version=4, chain="chain")
    right = (
        "UPDATE log.event SET chain = sha256((SELECT chain FROM log.event WHERE position = 9)"
        " || digest || log.header(event)) WHERE position = 10"
    )
    await tamper(log, forged, right, "UPDATE log.head SET position = 10")
    assert said(await verify(log.pool)) == [(10, "fingerprint")]


@pytest.mark.parametrize("position", [0, -3])
async def test_an_event_before_the_first_is_found(log: Log, position: int) -> None:
    await tamper(log, FORGED.format(position=position, version=77, chain="chain"))
    assert said(await verify(log.pool)) == [(position, "not-appended")]


async def test_a_time_that_is_none_is_found_and_stops_nothing(log: Log) -> None:
    await tamper(log, "UPDATE log.event SET recorded_at = 'infinity' WHERE position = 2")
    assert said(await verify(log.pool)) == [(2, "link-broken")]


async def test_a_log_without_a_head_is_not_whole(log: Log) -> None:
    await tamper(log, "DELETE FROM log.head")
    assert said(await verify(log.pool)) == [(0, "head-missing")]


FORGE_ALL = (
    "UPDATE log.event SET actor = 'x' WHERE position = 2",
    "UPDATE log.event t SET chain = l.chain FROM (SELECT position, log.linked(digest ||"
    " log.header(e)) OVER (PARTITION BY stream_id ORDER BY version) AS chain FROM log.event e) l"
    " WHERE l.position = t.position",
    "UPDATE log.head SET fingerprint = (SELECT log.linked(chain ORDER BY position) FROM log.event)",
)


async def test_an_owner_who_computes_all_links_anew_meets_an_anchor(log: Log) -> None:
    one = await verify(log.pool, limit=4)
    anchor = Anchor(position=4, fingerprint=one.fingerprint or "")
    assert (await verify(log.pool, anchors=[anchor])).found == 0
    await tamper(log, *FORGE_ALL)
    assert (await verify(log.pool)).found == 0
    assert said(await verify(log.pool, anchors=[anchor])) == [(4, "anchor")]


async def test_an_anchor_beyond_the_end_says_that_a_tail_is_gone(log: Log) -> None:
    anchor = Anchor(position=12, fingerprint="ab" * 32)
    assert said(await verify(log.pool, anchors=[anchor])) == [(12, "anchor")]


def _erased(name: str) -> Erased:
    return Erased(**received(name).ids, reason="request", scope="document", blobs=0)


async def test_what_an_erasure_took_out_passes(log: Log) -> None:
    await log.append([first(_erased(NAMES[0]))])
    ids = received(NAMES[0]).ids
    assert await log.redact(ids["document_id"], ids["version_id"]) == 3
    page = await verify(log.pool)
    assert (page.found, page.redacted, page.events) == (0, 3, 10)
    assert "Закон" not in str(await log.pool.fetch("SELECT data::text FROM log.event"))


REDACTED = "UPDATE log.event SET data = {data}, salt = NULL, redacted_at = now() WHERE position = 1"


async def test_nobody_can_say_that_something_was_erased(log: Log) -> None:
    await tamper(log, REDACTED.format(data="""data || '{"name": "(erased)", "source_key": ""}'"""))
    assert said(await verify(log.pool)) == [(1, "not-erased")]


async def test_a_redaction_that_borrows_the_tombstone_of_another_version_is_found(log: Log) -> None:
    await log.append([first(_erased(NAMES[1]))])
    other = received(NAMES[1])
    words = {
        "name": "(erased)", "source_key": "", "document_id": other.document_id,
        "version_id": other.version_id,
    }  # fmt: skip
    await tamper(log, REDACTED.format(data=f"data || '{json.dumps(words)}'"))
    assert said(await verify(log.pool)) == [(1, "not-erased")]


async def test_a_redacted_event_that_says_more_is_found(log: Log) -> None:
    await log.append([first(_erased(NAMES[0]))])
    await tamper(log, REDACTED.format(data="""data || '{"name": "another"}'"""))
    assert said(await verify(log.pool)) == [(1, "words-left")]


async def test_a_check_while_others_append_finds_nothing(log: Log) -> None:
    async def write(n: int) -> None:
        for i in range(40):
            await log.append([first(received(f"{n}-{i}.md"))])

    writers = asyncio.gather(*(write(n) for n in range(3)))
    while not writers.done():
        assert (await verify(log.pool)).found == 0
    await writers
    assert (await verify(log.pool)).events == 129


async def test_recorded_time_never_goes_back(log: Log) -> None:
    await tamper(log, "UPDATE log.head SET recorded_at = '2100-01-01'")
    await log.append([first(received("later.md"))])
    rows = await log.pool.fetch("SELECT recorded_at FROM log.event ORDER BY position")
    times = [r["recorded_at"] for r in rows]
    assert times == sorted(times)
    assert times[-1].year == 2100


async def test_memory_does_not_grow_with_the_log(log: Log) -> None:
    async def peak() -> int:
        tracemalloc.start()
        await verify(log.pool)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    await _many(log.pool, 1000)
    await verify(log.pool)  # whatever is loaded once
    small = await peak()
    await _many(log.pool, 9000)
    assert await peak() < 1.2 * small


async def _many(db: Any, n: int) -> None:
    await db.execute(
        "DO $$ DECLARE e jsonb; BEGIN FOR i IN 1.." + str(n) + " LOOP"
        " e := jsonb_build_object('event_id', gen_random_uuid(), 'type', 'Failed',"
        " 'schema_version', 1, 'lane', 'live', 'project', 'p', 'correlation_id',"
        " gen_random_uuid(), 'actor', 'a', 'occurred_at', now(), 'data', '{}'::jsonb);"
        " PERFORM log.append('s-' || gen_random_uuid(), -1, jsonb_build_array(e));"
        " END LOOP; END $$"
    )


# -- the migration ---------------------------------------------------------------------------------


@pytest.fixture
async def before_chains(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[str, Callable[[], Any]]]:
    """A database as the release before left it, and what brings it up to date."""
    name = "test_before_chains"
    everything = migrations.files()
    owner = await asyncpg.connect(postgres_dsn)
    await owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await owner.execute(f"CREATE DATABASE {name}")
    monkeypatch.setattr(migrations, "files", lambda: [f for f in everything if f[0] < "0009"])
    await migrate(on_database(postgres_dsn, name))
    monkeypatch.setattr(migrations, "files", lambda: everything)
    yield on_database(postgres_dsn, name), lambda: migrate(on_database(postgres_dsn, name))
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()


async def test_a_log_of_the_release_before_gets_its_links(before_chains: Any) -> None:
    dsn, upgrade = before_chains
    db = await pool(dsn)
    log = Log(db)
    for n in range(6):
        await log.append([first(received(NAMES[n % 3])), first(received(NAMES[n % 3]))])
    before = await log.read(0)
    assert "0009_chain.sql" in await upgrade()
    assert await log.read(0) == before
    await log.append([first(received(NAMES[0]))])
    page = await verify(db)
    assert (page.events, page.found) == (13, 0)
    with pytest.raises(asyncpg.PostgresError, match="append-only"):
        await db.execute("UPDATE log.event SET actor = 'x'")
    db.terminate()
