"""Each service connects as itself and tries what it must not do: database, bus, settings.

The tables below say who may do what. What is not in them nobody may: a new table, function, setting
or consumer that is not entered here fails a test.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client

from cli.datadir import BEHIND_THE_DOOR, BUS_USERS, ROLES
from cli.plan import APART, Stores, plan
from contracts.events import EVENTS, subject
from contracts.flow import durable, emitted_by
from docs.make_settings import settings
from kernel.db import pool
from kernel.embedded import EmbeddedNats, EmbeddedPostgres
from kernel.migrations import migrate
from kernel.provision import API, LANES, STREAM, consumers, nats_config, provision
from kernel.testing_wait import eventually
from tests.conftest import on_database

DATABASE_ROLES = tuple(f"kb_{r}" for r in ROLES)
WORKERS = ("ingest", "converter", "scanner", "indexer")
EVERYBODY = tuple(ROLES)

# -- who may do what in the database ---------------------------------------------------------------

R, W, D = "SELECT", "INSERT UPDATE", "DELETE"

TABLES: dict[str, dict[str, str]] = {
    "log.event": dict.fromkeys(EVERYBODY, R),
    "log.head": dict.fromkeys(EVERYBODY, R),
    "log.writer": {},
    "log.failure": dict.fromkeys(WORKERS, f"{R} {W}") | {"search": R, "ui": R},
    "log.projection": {"search": f"{R} {W}", "ingest": R, "indexer": R, "ui": R},
    "log.identity": {"ingest": R},
    "log.scrub": {"ingest": R},
    "read.version": {"search": f"{R} {W} {D}", "indexer": R},
    "read.validity": {"search": f"{R} {W} {D}", "indexer": R},
    "read.validity_past": {"search": f"{R} {W} {D}"},
    "read.known": {"search": R},
    "read.line": {"search": f"{R} {W} {D}", "indexer": f"{R} UPDATE"},
    "read.job": {"search": f"{R} {W} {D}"},
    "read.chunk": {"indexer": f"{R} {W} {D}", "search": R},
    "read.generation": {"indexer": f"{R} {W} {D}", "search": R},
    "read.active": {"indexer": f"{R} {W} {D}", "search": R},
    "read.placed": {"indexer": f"{R} {W} {D}"},
    "cache.parse": {"converter": f"{R} {W}", "ingest": f"{R} {D}"},
    "cache.embedding": {"indexer": f"{R} {W} {D}"},
    "auth.account": {"ui": f"{R} {W} {D}"},
    "auth.session": {"ui": f"{R} {W} {D}"},
    "auth.attempt": {"ui": f"{R} {W} {D}"},
    "public.migration": {},
}
"""Table → service → what it may do with the rows. Nobody may TRUNCATE, REFERENCE or TRIGGER."""

SCHEMAS: dict[str, tuple[str, ...]] = {
    "log": EVERYBODY,
    "read": ("indexer", "search"),
    "cache": ("converter", "indexer", "ingest"),
    "auth": ("ui",),
    "public": (),
}
"""Schema → who may look into it. Nobody may create in one."""

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "log.append": (*WORKERS, "search"),
    "log.guard": (),
    "log.again": (),
    "log.digest": (),
    "log.header": (),
    "log.linked": (),
    "log.linked_step": (),
    "log.redact": ("ingest",),
    "log.redacted": (),
    "read.instant": ("search",),
    "read.span": ("search",),
    "read.text_key": ("indexer",),
}

OF_POSTGRES: dict[str, tuple[str, ...]] = {
    "pg_advisory_lock(bigint)": (),
    "pg_advisory_lock(integer,integer)": (),
    "pg_advisory_lock_shared(bigint)": (),
    "pg_advisory_lock_shared(integer,integer)": (),
    "pg_advisory_xact_lock(bigint)": (),
    "pg_advisory_xact_lock(integer,integer)": ("indexer",),
    "pg_advisory_xact_lock_shared(bigint)": (),
    "pg_advisory_xact_lock_shared(integer,integer)": ("indexer",),
    "pg_try_advisory_lock(bigint)": (),
    "pg_try_advisory_lock(integer,integer)": ("indexer",),
    "pg_try_advisory_lock_shared(bigint)": (),
    "pg_try_advisory_lock_shared(integer,integer)": (),
    "pg_try_advisory_xact_lock(bigint)": (),
    "pg_try_advisory_xact_lock(integer,integer)": (),
    "pg_try_advisory_xact_lock_shared(bigint)": (),
    "pg_try_advisory_xact_lock_shared(integer,integer)": (),
    "lo_creat(integer)": (),
    "lo_create(oid)": (),
    "lo_from_bytea(oid,bytea)": (),
    "lo_open(oid,integer)": (),
    "lo_put(oid,bigint,bytea)": (),
    "lo_unlink(oid)": (),
    "lowrite(integer,bytea)": (),
    "lo_truncate(integer,integer)": (),
    "lo_truncate64(integer,bigint)": (),
    "lo_import(text)": (),
    "lo_export(oid,text)": (),
    "pg_read_file(text)": (),
    "pg_read_binary_file(text)": (),
    "pg_ls_dir(text)": (),
    "pg_reload_conf()": (),
    "pg_switch_wal()": (),
    "pg_create_restore_point(text)": (),
}
"""Functions of Postgres that store bytes, stop others, or reach the machine."""

FORBIDDEN = (
    "UPDATE log.event SET type = type",
    "DELETE FROM log.event",
    "TRUNCATE log.event",
    "INSERT INTO log.event (position) VALUES (1)",
    "UPDATE log.head SET position = 0",
    "INSERT INTO log.writer VALUES ('kb_converter', 'Released')",
    "ALTER TABLE log.event DISABLE TRIGGER ALL",
    "DROP TABLE log.event",
    "BEGIN; LOCK TABLE log.event IN EXCLUSIVE MODE",
    "CREATE SCHEMA mine",
    "CREATE TABLE public.mine (x int)",
    "CREATE TABLE log.mine (x int)",
    "CREATE TEMP TABLE mine (x int)",
    "CREATE FUNCTION log.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION dblink SCHEMA log",
    "CREATE ROLE mine LOGIN",
    "CREATE DATABASE mine",
    "ALTER ROLE postgres PASSWORD 'mine'",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM public.migration",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY (SELECT 1) TO '/tmp/mine'",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT lo_from_bytea(0, 'mine')",
    "SELECT pg_advisory_xact_lock(4201)",
    "SET session_replication_role = replica",
    "ALTER SYSTEM SET log_statement = 'all'",
)
"""What no service may do; the words are run, each role by itself."""


@pytest.fixture(scope="module")
def database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    """One database for all of this: nothing of it can be changed but the log, which only grows.

    Its roles have passwords, set as the product sets them.
    """
    name = f"privileges_{uuid4().hex[:12]}"
    dsn = on_database(postgres_dsn, name)

    async def run(words: str) -> None:
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute(words)
        await connection.close()

    asyncio.run(run(f"CREATE DATABASE {name} TEMPLATE {migrated_template}"))
    asyncio.run(migrate(dsn, {role: f"pw-{role}" for role in DATABASE_ROLES}))
    yield dsn
    asyncio.run(run(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def owner(database: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def connect_as(database: str, role: str) -> "asyncpg.Connection[Any]":
    return await asyncpg.connect(database, user=role, password=f"pw-{role}")


async def granted(owner: Any, query: str, roles: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {tuple(row) for row in await owner.fetch(query, list(roles))}


async def test_a_role_may_do_with_a_table_what_the_list_says_and_nothing_else(owner: Any) -> None:
    found = await granted(
        owner,
        """SELECT format('%s.%s', n.nspname, c.relname), r, p
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                unnest($1::text[]) r, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE',
                  'TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN']) p
           WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%'
             AND n.nspname <> 'information_schema'
             AND (has_table_privilege(r, c.oid, p)
                  OR p IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
                     AND has_any_column_privilege(r, c.oid, p))""",
        ("public", *DATABASE_ROLES),
    )
    declared = {
        (table, f"kb_{service}", right)
        for table, services in TABLES.items()
        for service, rights in services.items()
        for right in rights.split()
    }
    assert found == declared


async def test_every_table_is_in_the_list(owner: Any) -> None:
    rows = await owner.fetch(
        """SELECT format('%s.%s', n.nspname, c.relname)
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname NOT LIKE 'pg\\_%'
             AND n.nspname <> 'information_schema'"""
    )
    assert {r[0] for r in rows} == set(TABLES)


async def test_a_role_looks_into_the_schemas_of_the_list_and_creates_in_none(owner: Any) -> None:
    found = await granted(
        owner,
        """SELECT n.nspname, r, p
           FROM pg_namespace n, unnest($1::text[]) r, unnest(ARRAY['USAGE', 'CREATE']) p
           WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
             AND has_schema_privilege(r, n.oid, p)""",
        ("public", *DATABASE_ROLES),
    )
    assert found == {(s, f"kb_{who}", "USAGE") for s, users in SCHEMAS.items() for who in users}
    names = await owner.fetch(
        """SELECT nspname FROM pg_namespace
           WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"""
    )
    assert {r[0] for r in names} == set(SCHEMAS)


async def test_a_role_calls_the_functions_of_the_list(owner: Any) -> None:
    found = await granted(
        owner,
        """SELECT format('%s.%s', n.nspname, f.proname), r
           FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace, unnest($1::text[]) r
           WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
             AND has_function_privilege(r, f.oid, 'EXECUTE')""",
        ("public", *DATABASE_ROLES),
    )
    assert found == {(f, f"kb_{who}") for f, users in FUNCTIONS.items() for who in users}


async def test_a_function_of_postgres_that_reaches_further_is_closed(owner: Any) -> None:
    found = await granted(
        owner,
        """SELECT f.oid::regprocedure::text, r FROM pg_proc f, unnest($1::text[]) r
           WHERE f.pronamespace = 'pg_catalog'::regnamespace
             AND (f.proname ~ '^(pg_(try_)?advisory(_xact)?_lock|lo_|lowrite)'
                  OR f.oid::regprocedure::text = ANY ($2::text[]))
             AND has_function_privilege(r, f.oid, 'EXECUTE')""".replace(
            "$2::text[]", "ARRAY[" + ", ".join(f"'{f}'" for f in OF_POSTGRES) + "]"
        ),
        ("public", *DATABASE_ROLES),
    )
    harmless = {"lo_close(integer)", "lo_get(oid)", "lo_get(oid,bigint,integer)",
                "lo_lseek(integer,integer,integer)", "lo_lseek64(integer,bigint,integer)",
                "lo_tell(integer)", "lo_tell64(integer)"}  # fmt: skip
    assert {f for f in found if f[0] not in harmless} == {
        (f, f"kb_{who}") for f, users in OF_POSTGRES.items() for who in users
    }


async def test_a_role_is_nothing_but_a_login(owner: Any) -> None:
    rows = await owner.fetch(
        """SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls
           FROM pg_roles WHERE rolname LIKE 'kb\\_%'"""
    )
    assert {r["rolname"] for r in rows} == set(DATABASE_ROLES)
    assert not any(any(tuple(r)[1:]) for r in rows)
    assert (
        await owner.fetchval(
            """SELECT count(*) FROM pg_auth_members
           WHERE member IN (SELECT oid FROM pg_roles WHERE rolname LIKE 'kb\\_%')"""
        )
        == 0
    )
    found = await granted(
        owner,
        """SELECT r, p FROM unnest($1::text[]) r, unnest(ARRAY['CONNECT', 'CREATE', 'TEMP']) p
           WHERE has_database_privilege(r, current_database(), p)""",
        ("public", *DATABASE_ROLES),
    )
    assert found == {(role, "CONNECT") for role in DATABASE_ROLES}


@pytest.mark.parametrize("role", DATABASE_ROLES)
async def test_what_is_forbidden_fails_when_a_service_tries_it(database: str, role: str) -> None:
    connection = await connect_as(database, role)
    done = []
    try:
        for words in (*FORBIDDEN, *(f"SET ROLE {r}" for r in DATABASE_ROLES if r != role)):
            try:
                await connection.execute(words)
                done.append(words)
            except asyncpg.PostgresError as error:
                assert error.sqlstate == "42501", f"{words}: {error}"
            await connection.execute("ROLLBACK; RESET ALL")
    finally:
        await connection.close()
    assert done == []


def event_row(type_: str) -> str:
    return json.dumps(
        [
            {
                "event_id": str(uuid4()), "type": type_, "schema_version": 1, "lane": "live",
                "project": "p", "correlation_id": str(uuid4()), "actor": "x",
                "occurred_at": "2026-01-01T00:00:00Z", "data": {},
            }
        ]
    )  # fmt: skip


@pytest.mark.parametrize(("service", "type_"), [*product(ROLES, EVENTS)])
async def test_an_event_is_appended_exactly_by_those_that_the_flow_names(
    database: str, service: str, type_: str
) -> None:
    connection = await connect_as(database, f"kb_{service}")
    words = "SELECT status FROM log.append('version-x', -1, $1)"
    try:
        if type_ in emitted_by(service):
            assert await connection.fetchval(words, event_row(type_)) == "appended"
        else:
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetchval(words, event_row(type_))
            assert refused.value.sqlstate in ("KB005", "42501")
    finally:
        await connection.close()


async def test_one_event_that_is_not_its_own_spoils_an_append(database: str) -> None:
    connection = await connect_as(database, "kb_scanner")
    before = await connection.fetchval("SELECT max(position) FROM log.event")
    both = json.dumps([*json.loads(event_row("ScanVerdict")), *json.loads(event_row("Erased"))])
    try:
        with pytest.raises(asyncpg.PostgresError) as refused:
            await connection.execute("SELECT log.append('version-x', -1, $1)", both)
        assert refused.value.sqlstate == "KB005"
        assert await connection.fetchval("SELECT max(position) FROM log.event") == before
    finally:
        await connection.close()


async def test_a_service_writes_its_own_failures_and_no_others(database: str) -> None:
    fail = """INSERT INTO log.failure (consumer, event_id, error_type, error, state)
              VALUES ($1, 'e', 'x', 'x', 'retrying')
              ON CONFLICT (consumer, event_id) DO UPDATE SET state = 'dead'"""
    scanner = await connect_as(database, "kb_scanner")
    converter = await connect_as(database, "kb_converter")
    try:
        for _ in range(2):
            await scanner.execute(fail, "scanner-parsed-live")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await converter.execute(fail, "scanner-parsed-live")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await converter.execute(fail, "indexer-chunked-live")
        settled = await converter.execute("UPDATE log.failure SET state = 'resolved'")
        assert settled == "UPDATE 0"
    finally:
        await scanner.close()
        await converter.close()


async def test_the_pool_of_a_service_works_with_what_it_may(database: str) -> None:
    db = await pool(database.replace("postgres@", "kb_ui:pw-kb_ui@"), size=1)
    try:
        assert await db.fetchval("SELECT count(*) FROM auth.account") == 0
    finally:
        db.terminate()


async def test_an_owner_that_is_no_superuser_can_migrate_too(tmp_path: Path) -> None:
    """Hosted databases give no superuser: of PUBLIC's rights on Postgres' own functions two kinds
    stay there (large objects, locks by number), everything else is as here."""
    server = EmbeddedPostgres(tmp_path / "postgres", fsync=False)
    try:
        dsn = server.start()
        connection = await asyncpg.connect(dsn)
        await connection.execute("CREATE ROLE boss LOGIN CREATEROLE")
        await connection.execute("CREATE DATABASE hosted OWNER boss")
        await connection.close()
        hosted = on_database(dsn, "hosted").replace("postgres@", "boss@")
        for _ in ("once", "and after an upgrade"):
            await migrate(hosted, {role: f"pw-{role}" for role in DATABASE_ROLES})
        scanner = await connect_as(hosted.replace("boss@", ""), "kb_scanner")
        assert await scanner.fetchval("SELECT count(*) FROM log.event") == 0
        for words in ("CREATE TEMP TABLE mine (x int)", "UPDATE log.event SET type = type"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await scanner.execute(words)
        await scanner.close()
    finally:
        server.stop()


# -- the bus ---------------------------------------------------------------------------------------


class Bus(NamedTuple):
    """A server with the users that the product makes."""

    server: EmbeddedNats

    async def connect(self, user: str) -> tuple[Client, list[str]]:
        """A connection, and what the server refused on it."""
        refused: list[str] = []

        async def note(error: Exception) -> None:
            refused.append(str(error).lower())

        url = self.server.url.replace("//", f"//{user}:secret-{user}@")
        client = await nats.connect(url, error_cb=note, allow_reconnect=False)
        return client, refused

    async def messages(self) -> int:
        """How many events are in the stream."""
        client, _ = await self.connect("admin")
        info = await client.jetstream().stream_info(STREAM)
        await client.close()
        return int(info.state.last_seq)


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    config = nats_config({user: f"secret-{user}" for user in BUS_USERS})
    server = EmbeddedNats(tmp_path_factory.mktemp("bus") / "nats", config=config)
    server.start()
    asyncio.run(provision(server.url.replace("//", "//admin:secret-admin@")))
    yield Bus(server)
    server.stop()


async def publish(bus: Bus, data: bytes = b"{}") -> None:
    relay, refused = await bus.connect("relay")
    await relay.request("kb.evt.live.DocumentReceived.v1", data, timeout=5)
    await relay.close()
    assert refused == []


JS = "$JS.API"
MANAGEMENT = (
    f"{JS}.INFO",
    f"{JS}.STREAM.NAMES",
    f"{JS}.STREAM.LIST",
    f"{JS}.STREAM.INFO.{STREAM}",
    f"{JS}.STREAM.CREATE.MINE",
    f"{JS}.STREAM.UPDATE.{STREAM}",
    f"{JS}.STREAM.DELETE.{STREAM}",
    f"{JS}.STREAM.PURGE.{STREAM}",
    f"{JS}.STREAM.MSG.GET.{STREAM}",
    f"{JS}.STREAM.MSG.DELETE.{STREAM}",
    f"{JS}.STREAM.SNAPSHOT.{STREAM}",
    f"{JS}.STREAM.RESTORE.{STREAM}",
    f"{JS}.DIRECT.GET.{STREAM}",
    f"{JS}.DIRECT.GET.{STREAM}.kb.evt.live.Parsed.v1",
    f"{JS}.CONSUMER.NAMES.{STREAM}",
    f"{JS}.CONSUMER.LIST.{STREAM}",
    f"{JS}.CONSUMER.CREATE.{STREAM}",
    f"{JS}.CONSUMER.CREATE.{STREAM}.mine",
    f"{JS}.CONSUMER.DURABLE.CREATE.{STREAM}.mine",
    f"{JS}.ACCOUNT.PURGE.KB",
    "$SYS.REQ.SERVER.PING",
)
"""What only the administrator asks (the relay may ask how long the stream is, and delete what an
erasure took out of the log)."""


def of_others(user: str) -> list[str]:
    """What one would ask to read, hold up or delete another service's consumers."""
    names = [durable(s, e, lane) for s, e, lane in consumers() if s != user]
    kinds = ("CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE", "CONSUMER.PAUSE")
    asked = [f"{api}.{kind}.{STREAM}.{n}" for api in (API, JS) for kind in kinds for n in names]
    return [*asked, *(f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0" for name in names)]


def of_itself(user: str) -> list[str]:
    """What even of its own consumers is not a service's to do."""
    names = [durable(s, e, lane) for s, e, lane in consumers() if s == user]
    kinds = ("CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET", "CONSUMER.UNPIN")
    asked = [f"{api}.{kind}.{STREAM}.{n}" for api in (API, JS) for kind in kinds for n in names]
    return [*asked, *(f"{JS}.CONSUMER.MSG.NEXT.{STREAM}.{n}" for n in names)]


@pytest.mark.parametrize("user", [u for u in BUS_USERS if u != "admin"])
async def test_a_user_of_the_bus_publishes_only_what_it_must(bus: Bus, user: str) -> None:
    events = [subject(lane, name, 1) for lane in LANES for name in EVENTS]
    tried = [*MANAGEMENT, *of_others(user), *of_itself(user), "mine", "_INBOX.x.y", "_R_.x"]
    if user == "relay":
        tried.remove(f"{JS}.STREAM.INFO.{STREAM}")
        tried.remove(f"{JS}.STREAM.MSG.DELETE.{STREAM}")
    else:
        tried += events
    client, refused = await bus.connect(user)
    before = await bus.messages()
    for name in tried:
        await client.publish(name, b"{}", reply="_INBOX.mine")
    await client.flush()
    await eventually(lambda: _equal(len(refused), len(tried)))
    assert [n for n, said in zip(tried, refused, strict=True) if n.lower() not in said] == []
    assert await bus.messages() == before
    await client.close()


@pytest.mark.parametrize("user", [u for u in BUS_USERS if u != "admin"])
@pytest.mark.parametrize("name", [">", "kb.evt.>", "kb.>", "*", "$JS.>", "$JS.EVENT.>", "_R_.>"])
async def test_a_user_of_the_bus_subscribes_to_answers_only(bus: Bus, user: str, name: str) -> None:
    client, refused = await bus.connect(user)
    await client.subscribe(name)
    await client.flush()
    await eventually(lambda: _equal(len(refused), 1))
    assert "permissions violation" in refused[0]
    await client.close()


@pytest.mark.parametrize("spy", [u for u in BUS_USERS if u != "admin"])
async def test_nobody_hears_the_answers_to_another(bus: Bus, spy: str) -> None:
    listening, _ = await bus.connect(spy)
    heard = []

    async def note(message: Any) -> None:
        heard.append(message.subject)

    await listening.subscribe("_INBOX.>", cb=note)
    await listening.flush()
    for service, event, lane in consumers():
        if service != spy:
            client, _ = await bus.connect(service)
            await client.jetstream(prefix=API).consumer_info(STREAM, durable(service, event, lane))
            await client.close()
    await listening.flush()
    assert heard == []
    await listening.close()


@pytest.mark.parametrize("service", WORKERS)
async def test_an_answer_cannot_be_sent_into_the_stream(bus: Bus, service: str) -> None:
    """Whoever may ask names the place for the answer. In the stream it would take a position of
    the log: that event would never be published, or the relay would stop."""
    await publish(bus)
    client, _ = await bus.connect(service)
    before = await bus.messages()
    for name in (durable(s, e, lane) for s, e, lane in consumers() if s == service):
        for asked in (f"{API}.CONSUMER.MSG.NEXT", f"{API}.CONSUMER.INFO"):
            await client.publish(
                f"{asked}.{STREAM}.{name}", b'{"batch":1,"expires":100000000}',
                reply="kb.evt.live.Indexed.v1",
            )  # fmt: skip
        await client.publish(
            f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0", b"", reply="kb.evt.live.Indexed.v1"
        )
        # An answer to its own inbox comes behind those.
        assert (await client.jetstream(prefix=API).consumer_info(STREAM, name)).name == name
    await client.close()
    assert await bus.messages() == before


@pytest.mark.parametrize("service", WORKERS)
async def test_a_service_reads_and_acknowledges_its_own_consumers(bus: Bus, service: str) -> None:
    relay, _ = await bus.connect("relay")
    client, refused = await bus.connect(service)
    js = client.jetstream(prefix=API)
    for _, event, lane in (c for c in consumers() if c[0] == service):
        await relay.request(subject(lane, event.__name__, 1), b'{"mine": 1}', timeout=5)
        name = durable(service, event, lane)
        pull = await js.pull_subscribe_bind(consumer=name, stream=STREAM)
        while True:  # other tests published too
            (message,) = await pull.fetch(1, timeout=5)
            await message.in_progress()
            await message.ack_sync()
            if message.data == b'{"mine": 1}':
                break
        info = await js.consumer_info(STREAM, name)
        assert (info.num_ack_pending, info.num_redelivered) == (0, 0)
    assert refused == []
    await client.close()
    await relay.close()


async def test_without_a_user_nobody_is_let_in(bus: Bus) -> None:
    for url in (bus.server.url, bus.server.url.replace("//", "//relay:wrong@")):
        with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
            await nats.connect(url, allow_reconnect=False, connect_timeout=5)


async def test_a_store_of_before_the_accounts_is_filled_again(tmp_path: Path) -> None:
    """An installation whose stream was in the account that all share: the relay fills the new one
    from the log, so nothing needs to be moved."""
    old = EmbeddedNats(tmp_path / "nats")
    await provision(old.start())
    client = await nats.connect(old.url)
    await client.request("kb.evt.live.DocumentReceived.v1", b"{}", timeout=5)
    await client.close()
    old.stop()
    users = {user: f"secret-{user}" for user in BUS_USERS}
    new = Bus(EmbeddedNats(tmp_path / "nats", config=nats_config(users)))
    new.server.start()
    try:
        await provision(new.server.url.replace("//", "//admin:secret-admin@"))
        assert await new.messages() == 0
        await publish(new)
        assert await new.messages() == 1
    finally:
        new.server.stop()


# -- settings --------------------------------------------------------------------------------------

ALL = {
    "KB_DATA", "KB_PORT", "KB_RUN_ID", "KB_POSTGRES_URL", "KB_LOG_LEVEL", "KB_LOG_FORMAT",
    "KB_START_TIMEOUT", "PYTHONUNBUFFERED", "PATH", "HOME", "LANG", "TMPDIR",
}  # fmt: skip
BUS = {"KB_NATS_URL", "KB_NATS_API"}
BLOBS = {"KB_BLOBS", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID"}
MODELS = {"KB_MODEL_CACHE", "HF_TOKEN", "HTTPS_PROXY", "NO_PROXY", "OMP_NUM_THREADS"}
EMBEDDER = MODELS | {"KB_QDRANT_URL", "KB_QDRANT_API_KEY", "KB_TORCH_*", "KB_EMBED*"}
GIVEN: dict[str, set[str]] = {
    "relay": ALL | {"KB_NATS_URL"},
    "ingest": ALL | BUS | BLOBS
    | {
        "KB_API_KEY", "KB_MAX_UPLOAD_BYTES", "KB_CONCURRENCY", "KB_DROPZONE*", "KB_BACKUPS",
        "KB_AUDIT_*",
    },
    "scanner": ALL | BUS | BLOBS
    | {"KB_API_KEY", "KB_CONCURRENCY", "KB_AI_*", "HTTPS_PROXY", "NO_PROXY", "OMP_NUM_THREADS"},
    "converter": ALL | BUS | BLOBS | MODELS
    | {"KB_MAX_UPLOAD_BYTES", "KB_CONCURRENCY", "KB_DOCLING_*"},
    "indexer": ALL | BUS | BLOBS | EMBEDDER | {"KB_API_KEY", "KB_CONCURRENCY", "KB_AUDIT_*"},
    "search": ALL | BLOBS | EMBEDDER | {"KB_API_KEY", "KB_RERANKER*", "KB_AUDIT_*"},
    "ui": ALL | {
        "KB_API_KEY", "KB_DOOR_KEY_*", "KB_BOOTSTRAP_PASSWORD", "KB_FORWARDED_*", "KB_PUBLIC_HOST",
        "KB_SESSION_*", "KB_BACKUPS", "KB_INGEST_URL",
        "KB_SEARCH_URL", "KB_SCANNER_URL", "KB_INDEXER_URL",
    },
}  # fmt: skip
"""Service → the variables that its process may have, besides its own `KB_<SERVICE>_*`."""

SECRETS: dict[str, set[str]] = {
    "KB_API_KEY": {"ui"},
    "KB_BOOTSTRAP_PASSWORD": {"ui"},
    "KB_OWNER_PASSWORD": set(),
    "KB_BUS_PASSWORD_ADMIN": set(),
    "KB_AI_KEY": {"scanner"},
    "KB_EMBEDDINGS_KEY": {"indexer", "search"},
    "KB_RERANKER_KEY": {"search"},
    "KB_QDRANT_API_KEY": {"indexer", "search"},
    "AWS_SECRET_ACCESS_KEY": {"ingest", "scanner", "converter", "indexer", "search"},
    "HF_TOKEN": {"converter", "indexer", "search"},
    **{f"KB_DOOR_KEY_{s.upper()}": {s, "ui"} for s in BEHIND_THE_DOOR},
    **{f"KB_DB_PASSWORD_{s.upper()}": {s} for s in ROLES},
    **{f"KB_BUS_PASSWORD_{s.upper()}": {s} for s in BUS_USERS if s != "admin"},
}
"""Secret → the services in whose environment its value stands."""


def planned() -> dict[str, dict[str, str]]:
    """The environment of each service where everything that there is, is set."""
    names = [*settings(), *SECRETS, *BLOBS, *MODELS, "PATH", "HOME", "LANG", "TMPDIR"]
    names += ["SSH_AUTH_SOCK", "PGPASSWORD", "OPENAI_API_KEY", "LD_PRELOAD", "PYTHONPATH"]
    config = {name: f"<{name}>" for name in names}
    stores = Stores("/data", "postgresql://h:1/kb", "nats://h:2", "s3://bucket")
    ports = {"+".join(group): 1 for group in APART}
    return {spec.name: dict(spec.env) for spec in plan(config, stores, ports, "run")}


@pytest.mark.parametrize("service", GIVEN)
def test_a_process_has_the_variables_of_the_list_and_no_others(service: str) -> None:
    patterns = (*GIVEN[service], f"KB_{service.upper()}_*")
    env = planned()[service]
    assert [name for name in env if not any(fnmatchcase(name, p) for p in patterns)] == []
    # Whatever the list promises is there, so that no line of it is out of date.
    assert [p for p in GIVEN[service] if not any(fnmatchcase(n, p) for n in env)] == []


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_known_to_those_of_the_list(secret: str) -> None:
    quoted = f"<{secret}>", quote(f"<{secret}>", safe="")
    knowing = {
        s for s, env in planned().items() if any(q in v for v in env.values() for q in quoted)
    }
    assert knowing == SECRETS[secret]


def test_every_secret_is_in_the_list() -> None:
    hidden = {n for n, field in settings().items() if "SecretStr" in str(field.annotation)}
    assert hidden <= set(SECRETS)


def _equal(actual: Any, wanted: Any) -> bool:
    assert actual == wanted
    return True
