"""Who gets which environment."""

from dataclasses import replace

import pytest

from cli.datadir import BEHIND_THE_DOOR, BUS_USERS, ROLES
from cli.plan import Spec, Stores, groups, plan, with_user
from contracts.flow import SERVICES, consumed_by
from kernel.provision import API

STORES = Stores("/d", "postgresql://postgres:own@h:1/kb", "nats://h:2", "/d/blobs")
CONFIG = {
    "PATH": "/bin",
    "KB_API_KEY": "key",
    **{f"KB_DOOR_KEY_{s.upper()}": f"door-{s}" for s in BEHIND_THE_DOOR},
    "KB_OWNER_PASSWORD": "owner-secret",
    "KB_EMBEDDER": "bundled",
    "KB_CONVERTER_TIMEOUT": "9",
    "AWS_SECRET_ACCESS_KEY": "not-ours",
    **{f"KB_DB_PASSWORD_{r.upper()}": f"db-{r}" for r in ROLES},
    **{f"KB_BUS_PASSWORD_{u.upper()}": f"bus-{u}" for u in BUS_USERS},
}


def _plan(stores: Stores = STORES, **more: str) -> dict[str, Spec]:
    config = CONFIG | more
    ports = {"+".join(g): 1000 + n for n, g in enumerate(groups(config))}
    return {s.name: s for s in plan(config, stores, ports, "run")}


def test_every_service_runs_once_and_the_relay_too() -> None:
    for url in ("", "http://q"):
        services = [s for spec in _plan(KB_QDRANT_URL=url).values() for s in spec.services]
        assert sorted(services) == sorted([*SERVICES, "relay"])


def test_an_embedded_vector_engine_is_opened_by_one_process() -> None:
    assert _plan()["indexer+search"].services == ("indexer", "search")
    assert {"indexer", "search"} <= _plan(KB_QDRANT_URL="http://q").keys()


@pytest.mark.parametrize("name", _plan())
def test_a_process_has_no_secret_of_another(name: str) -> None:
    spec = _plan()[name]
    values = "\n".join(spec.env.values())
    strangers = set(ROLES) - set(spec.services)
    assert [s for s in strangers if f"db-{s}" in values or f"bus-{s}@" in values] == []
    assert "owner-secret" not in values and "bus-admin" not in values
    assert "not-ours" not in values


def test_a_shared_process_has_one_database_role_a_service() -> None:
    env = _plan()["indexer+search"].env
    assert env["KB_POSTGRES_URL_INDEXER"] == "postgresql://kb_indexer:db-indexer@h:1/kb"
    assert env["KB_POSTGRES_URL_SEARCH"] == "postgresql://kb_search:db-search@h:1/kb"
    assert env["KB_POSTGRES_URL"] == env["KB_POSTGRES_URL_INDEXER"]


def test_only_readers_of_the_bus_and_the_relay_have_its_address() -> None:
    specs = _plan(KB_QDRANT_URL="http://q")
    on_the_bus = {name for name, spec in specs.items() if "KB_NATS_URL" in spec.env}
    assert on_the_bus == {"relay", *(s for s in SERVICES if consumed_by(s))}
    assert specs["scanner"].env["KB_NATS_URL"] == "nats://scanner:bus-scanner@h:2"


def test_a_bus_of_somebody_elses_is_reached_as_the_settings_say() -> None:
    outside = replace(STORES, nats="nats://u:p@h:2", external_nats=True)
    assert "KB_NATS_API" not in _plan(outside)["scanner"].env
    env = _plan(outside, KB_NATS_API="$JS.hub.API")["scanner"].env
    assert (env["KB_NATS_URL"], env["KB_NATS_API"]) == ("nats://u:p@h:2", "$JS.hub.API")
    assert _plan()["scanner"].env["KB_NATS_API"] == API


def test_a_service_gets_its_own_settings_and_no_other_services() -> None:
    specs = _plan()
    assert [n for n, s in specs.items() if "KB_CONVERTER_TIMEOUT" in s.env] == ["converter"]
    assert [n for n, s in specs.items() if "KB_EMBEDDER" in s.env] == ["indexer+search"]


def test_cloud_credentials_reach_those_that_read_a_cloud_store_and_nobody_else() -> None:
    assert not any("AWS_SECRET_ACCESS_KEY" in spec.env for spec in _plan().values())
    having = {
        name
        for name, spec in _plan(replace(STORES, blobs="s3://bucket/kb")).items()
        if "AWS_SECRET_ACCESS_KEY" in spec.env
    }
    assert having == {"ingest", "scanner", "converter", "indexer+search"}


def test_the_front_door_knows_where_the_others_listen() -> None:
    specs = _plan()
    env = specs["ui"].env
    assert env["KB_SEARCH_URL"] == env["KB_INDEXER_URL"]
    assert env["KB_INGEST_URL"] == f"http://127.0.0.1:{specs['ingest'].port}"


def test_behind_the_door_everybody_has_a_key_of_its_own() -> None:
    specs = _plan(KB_QDRANT_URL="http://q")
    keys = {s: specs[s].env["KB_API_KEY"] for s in BEHIND_THE_DOOR}
    assert keys == {s: f"door-{s}" for s in BEHIND_THE_DOOR}
    assert {s: specs["ui"].env[f"KB_DOOR_KEY_{s.upper()}"] for s in BEHIND_THE_DOOR} == keys
    assert [n for n, s in specs.items() if "key" in s.env.values()] == ["ui"]


def test_the_front_door_shows_a_shared_process_the_key_of_that_process() -> None:
    specs = _plan()
    shown = specs["ui"].env
    own = specs["indexer+search"].env["KB_API_KEY"]
    assert shown["KB_DOOR_KEY_SEARCH"] == shown["KB_DOOR_KEY_INDEXER"] == own == "door-indexer"


def test_the_first_password_goes_to_the_ui_alone() -> None:
    specs = _plan(KB_BOOTSTRAP_PASSWORD="first")
    assert [n for n, s in specs.items() if "first" in s.env.values()] == ["ui"]


def test_a_password_in_a_url_is_quoted() -> None:
    assert with_user("nats://old:x@h:4", "a", "p@/:") == "nats://a:p%40%2F%3A@h:4"
