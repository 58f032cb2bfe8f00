"""The containers of deploy/compose.yaml as plain processes: each with exactly the environment that
compose gives it (other addresses), its own command, an unprivileged user, folders as mounted."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from contracts.flow import SERVICES
from deploy.prepare import bring_up_to_date, bus_config
from kernel.embedded import EmbeddedNats, EmbeddedPostgres, free_ports
from kernel.spawn import Drop, guarded
from kernel.vectors.stub import QdrantStub
from tests.compose import CONTAINERS, NAMES, environment

RUNNING = ("relay", *SERVICES)
USER = 10001
ROOT = os.getuid() == 0
DROP = ROOT and all(p.stat().st_mode & 0o001 for p in Path(sys.executable).resolve().parents)
"""Become the containers' user, unless the interpreter is closed to it (one in /root)."""
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
START_SECONDS = 180.0
KB = [sys.executable, "-P", "-m", "cli.main"]


@dataclass
class Host:
    """What takes the place of the container network and the volumes."""

    settings: dict[str, str]
    addresses: dict[str, str]
    folder: Path
    ports: dict[str, int]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def environment(self, container: str) -> dict[str, str]:
        """Compose's environment, with this machine's addresses and folders."""
        folders = {f"/{name}": str(self.folder / name) for name in ("data", "blobs", "models")}
        env = environment(container, self.settings)
        for inside, here in self.addresses.items():
            env = {k: v.replace(inside, here) for k, v in env.items()}
        return {k: folders.get(v, v) for k, v in env.items()}

    def start(self, service: str) -> None:
        """Run what the container runs."""
        assert CONTAINERS[service]["command"][0] == "kb"
        command = [*KB, *CONTAINERS[service]["command"][1:]]
        drop = Drop(USER, USER) if DROP else None
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "tmp")}
        env |= self.environment(service)
        env |= {"KB_HOST": "127.0.0.1", "KB_PORT": str(self.ports[service])}
        with (self.folder / f"{service}.log").open("wb") as log:
            self.processes[service] = subprocess.Popen(
                guarded(command, drop=drop), env=env, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd=self.folder / "data",
            )  # fmt: skip

    def wait_healthy(self) -> None:
        """Until every `/health` says 200, as compose's health check asks."""
        deadline = time.monotonic() + START_SECONDS
        waiting = dict(self.processes)
        while waiting:
            for service, process in list(waiting.items()):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(
                        f"{service}: {(self.folder / f'{service}.log').read_text()[-3000:]}"
                    )
                if healthy(self.ports[service]):
                    del waiting[service]
            time.sleep(0.1)

    def stop(self) -> None:
        """SIGTERM to all, as compose does."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(30)

    def kb(self, *words: str) -> Any:
        """The JSON that a `kb` command prints when it is used from the host."""
        env = dict(os.environ) | {
            "KB_URL": f"http://127.0.0.1:{self.ports['ui']}",
            "KB_API_KEY": self.settings["KB_API_KEY"],
        }
        command = [*KB, *words, "--json", "--data", str(self.folder / "none")]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads(done.stdout)


def healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=4).status_code == 200
    except httpx.HTTPError:
        return False


def make_folders(folder: Path) -> None:
    """The image's folders: /data cannot be written, /blobs and /tmp can."""
    if ROOT:  # pytest's own folders are closed to other users
        for parent in (folder, folder.parent, folder.parent.parent):
            parent.chmod(parent.stat().st_mode | 0o011)
    for name in ("data/blobs", "blobs", "tmp", "models"):
        (folder / name).mkdir(parents=True)
    for name in ("data/blobs", "blobs", "tmp", "data"):
        if DROP:
            os.chown(folder / name, USER, USER)
        (folder / name).chmod(0o500 if name == "data" else 0o700)


async def create_database(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE DATABASE citelog")
    await connection.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The servers, the one-shot tasks, then every service."""
    folder = tmp_path_factory.mktemp("compose")
    make_folders(folder)
    wanted = [n for n in NAMES if "PASSWORD" in n or "_KEY" in n]
    settings = {n: secrets.token_hex(16) for n in wanted} | {"KB_EMBEDDER": "hashed"}
    postgres = EmbeddedPostgres(
        folder / "postgres", password=settings["KB_OWNER_PASSWORD"], fsync=False
    )
    bus = bus_config(Host(settings, {}, folder, {}).environment("nats-config"))
    nats = EmbeddedNats(folder / "nats", config=bus[bus.index("accounts") :])
    ports = dict(zip(RUNNING, free_ports(len(RUNNING)), strict=True))
    with ExitStack() as stack:
        qdrant = stack.enter_context(QdrantStub(api_key=settings["KB_QDRANT_API_KEY"]))
        asyncio.run(create_database(postgres.start()))
        stack.callback(postgres.stop)
        nats.start()
        stack.callback(nats.stop)
        addresses = {
            "postgres:5432": urlsplit(postgres.dsn).netloc.rpartition("@")[2],
            "nats:4222": urlsplit(nats.url).netloc,
            "http://qdrant:6333": qdrant.url,
        } | {f"{s}:8080": f"127.0.0.1:{ports[s]}" for s in RUNNING}
        made = Host(settings, addresses, folder, ports)
        asyncio.run(bring_up_to_date(made.environment("migrate")))
        stack.callback(made.stop)
        for service in RUNNING:
            made.start(service)
        made.wait_healthy()
        yield made


def test_what_compose_gives_is_enough_for_the_whole_line(host: Host) -> None:
    files = sorted(map(str, EXAMPLES.iterdir()))
    outcome = host.kb("ingest", *files)
    assert outcome["ok"] and len(outcome["files"]) == len(files)
    reply = host.kb(
        "query", "maximum fine for a data breach", "--top-k", "5", "--as-of", "2025-12-30"
    )
    best = reply["results"][0]
    assert "fine" in best["text"].lower() and best["heading_path"]
    assert best["valid_from"].startswith("2024-01-01")


def test_no_service_writes_into_its_read_only_folder(host: Host) -> None:
    assert [p.name for p in (host.folder / "data").rglob("*")] == ["blobs"]
