"""The embedded servers: start, stop, kill, restart, wrong users."""

import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import asyncpg
import nats
import psutil
import pytest

from kernel.embedded import EmbeddedNats, EmbeddedPostgres, ServerError, free_port, free_ports
from kernel.testing_wait import eventually


async def _value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster") / "data"


async def test_postgres_folds_cyrillic_case(postgres_dsn: str) -> None:
    assert await _value(postgres_dsn, "SELECT lower('ДОКУМЕНТ')") == "документ"


async def test_postgres_listens_on_loopback_only(postgres_dsn: str) -> None:
    assert await _value(postgres_dsn, "SHOW listen_addresses") == "127.0.0.1"
    assert await _value(postgres_dsn, "SHOW unix_socket_directories") == ""


async def test_postgres_keeps_commits_over_kill_9(cluster: Path) -> None:
    server = EmbeddedPostgres(cluster)
    dsn = server.start()
    assert await _value(dsn, "SHOW fsync") == "on"
    await _value(dsn, "CREATE TABLE kept AS SELECT 7 AS n")
    server.kill()
    assert (cluster / "postmaster.pid").exists()
    dsn = server.start()
    try:
        assert await _value(dsn, "SELECT n FROM kept") == 7
    finally:
        server.stop()
    assert server.server is None


async def test_postgres_ignores_a_lock_whose_id_now_belongs_to_somebody_else(cluster: Path) -> None:
    server = EmbeddedPostgres(cluster)
    server.start()
    server.stop()
    (cluster / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster}\n0\n1\n\n\n\nready\n")
    dsn = server.start()
    try:
        assert await _value(dsn, "SELECT 1") == 1
    finally:
        server.stop()


async def test_postgres_with_a_password_refuses_another_one(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data", password="s3cret/@:", fsync=False)
    dsn = server.start()
    try:
        assert await _value(dsn, "SELECT 1") == 1
        with pytest.raises(asyncpg.InvalidPasswordError):
            await _value(dsn.replace("s3cret", "other"), "SELECT 1")
    finally:
        server.stop()
    assert "s3cret" not in (tmp_path / "data.log").read_text()
    assert not list(tmp_path.glob("*.pw"))


async def test_a_half_made_cluster_is_made_anew(tmp_path: Path) -> None:
    draft = tmp_path / "data.new"
    draft.mkdir()
    (draft / "PG_VERSION").write_text("half")
    server = EmbeddedPostgres(tmp_path / "data", fsync=False)
    try:
        assert await _value(server.start(), "SELECT 1") == 1
    finally:
        server.stop()


async def test_two_postgres_in_one_folder_are_refused(cluster: Path) -> None:
    first = EmbeddedPostgres(cluster)
    first.start()
    try:
        with pytest.raises(ServerError, match="already runs"):
            EmbeddedPostgres(cluster, lock_wait_seconds=0.1).start()
        assert first.server is not None
    finally:
        first.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to become")
async def test_as_root_postgres_runs_as_somebody_else_below_a_closed_folder(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "data", fsync=False)
    try:
        assert await _value(server.start(), "SELECT 1") == 1
        assert server.server is not None
        assert psutil.Process(server.server.pid).uids().effective != 0
    finally:
        server.stop()


async def test_nats_keeps_its_stream_and_port_over_kill_9(nats_server: EmbeddedNats) -> None:
    url = nats_server.url
    client = await nats.connect(url)
    await client.jetstream().add_stream(name="S", subjects=["s"])
    await client.jetstream().publish("s", b"kept")
    await client.close()
    nats_server.kill()
    assert nats_server.start() == url
    client = await nats.connect(url)
    assert (await client.jetstream().get_msg("S", 1)).data == b"kept"
    await client.close()


async def test_nats_takes_users_from_the_config_text(tmp_path: Path) -> None:
    users = 'authorization { users: [ { user: "a", password: "b" } ] }'
    server = EmbeddedNats(tmp_path / "nats", config=users)
    url = server.start()
    try:
        client = await nats.connect(url.replace("//", "//a:b@"), allow_reconnect=False)
        await client.close()
        with pytest.raises(nats.errors.Error, match="Authorization"):
            await nats.connect(url, allow_reconnect=False, connect_timeout=2)
    finally:
        server.stop()
    assert (tmp_path / "nats" / "server.conf").stat().st_mode & 0o077 == 0


def test_a_bad_nats_config_is_told(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="did not start"):
        EmbeddedNats(tmp_path / "nats", config="authorization {{{").start()


def test_a_taken_nats_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ServerError, match="address already in use"):
            EmbeddedNats(tmp_path / "nats", port=taken.getsockname()[1]).start()


def test_free_ports_can_be_bound() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", free_port()))


def test_of_several_free_ports_none_is_named_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([*[free_port()] * 3, *free_ports(9)])
    monkeypatch.setattr(secrets, "choice", lambda _range: next(drawn))
    ports = free_ports(4)
    assert len(set(ports)) == 4


def test_stop_twice_does_no_harm(nats_server: EmbeddedNats) -> None:
    nats_server.stop()
    nats_server.stop()
    assert nats_server.server is None


SCRIPT = """
import sys, time
from pathlib import Path
from kernel.embedded import EmbeddedNats, EmbeddedPostgres
p = EmbeddedPostgres(Path(sys.argv[1]) / "pg", fsync=False); p.start()
n = EmbeddedNats(Path(sys.argv[1]) / "nats"); n.start()
print(p.server.pid, n.server.pid, flush=True)
time.sleep(600)
"""


async def test_the_servers_die_with_their_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert all(map(psutil.pid_exists, pids))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    await eventually(lambda: not any(_alive(pid) for pid in pids), deadline=20)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
