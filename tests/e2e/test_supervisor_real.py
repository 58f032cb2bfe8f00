"""The real stack by the real command: what a new user does first."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from cli.datadir import DataDir
from cli.runstate import marked, read_state

pytestmark = pytest.mark.slow

TEXT = """# Data protection

## Fines

The maximum fine for a data breach is twenty million euros.

## Rights

Каждый человек имеет право на защиту своих данных.
"""


class Kb:
    """`kb` on one data folder."""

    def __init__(self, root: Path) -> None:
        self.data = DataDir(root)
        self.report: dict[str, Any] = {}

    def __call__(self, *words: str, exit_code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cli.main", *words, "--data", str(self.data.root)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("KB_")}
        done = subprocess.run(
            command, env=env | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
            timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == exit_code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *words: str, exit_code: int = 0) -> Any:
        return json.loads(self(*words, "--json", exit_code=exit_code).stdout)

    def http(self) -> httpx.Client:
        key = self.data.settings({})["KB_API_KEY"]
        return httpx.Client(
            base_url=self.report["url"], headers={"Authorization": f"Bearer {key}"}, timeout=60
        )


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kb]:
    kb = Kb(tmp_path_factory.mktemp("real") / "data")
    kb.report = kb.json("up", "--detach")
    state = read_state(kb.data)
    yield kb
    kb("down")
    assert state is not None
    assert [p.name() for p in marked(state.run_id)] == []


@pytest.fixture(scope="module")
def indexed(kb: Kb, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The ingest report of `law.md`."""
    file = tmp_path_factory.mktemp("files") / "law.md"
    file.write_text(TEXT)
    return kb.json("ingest", str(file))["files"][0]


def test_every_process_is_healthy_on_an_own_port(kb: Kb) -> None:
    status = kb.json("status")
    assert status["healthy"]
    assert len({p["port"] for p in status["processes"]}) == 8


def test_a_document_is_indexed_and_known_the_second_time(kb: Kb, indexed: Any) -> None:
    assert indexed["status"] == "indexed" and indexed["chunk_count"] >= 2
    again = kb("ingest", indexed["file"])
    assert again.stdout == f"{indexed['file']}: duplicate\n"


def test_query_json_is_the_http_reply(kb: Kb, indexed: Any) -> None:
    words = ("query", "maximum fine for a data breach", "--top-k", "2", "--json")
    by_cli = kb(*words).stdout
    body = {"query": words[1], "top_k": 2, "project": "default"}
    with kb.http() as http:
        assert json.loads(by_cli).keys() == http.post("/query", json=body).json().keys()


def test_a_hit_can_be_cited_from_the_body(kb: Kb, indexed: Any) -> None:
    hit = kb.json("query", "защита данных человека", "--top-k", "1")["results"][0]
    body = kb("doc", "body", hit["source_id"]).stdout.encode()
    assert "Каждый человек" in body[hit["byte_start"] : hit["byte_end"]].decode()


def test_the_journal_tells_the_whole_way(kb: Kb, indexed: Any) -> None:
    entries = kb.json("doc", "journal", indexed["document_id"])["entries"]
    assert [e["type"] for e in entries] == [
        "DocumentReceived", "Parsed", "ScanVerdict", "Converted", "ScanVerdict", "Chunked",
        "Indexed",
    ]  # fmt: skip


def test_events_come_in_order_without_a_gap(kb: Kb, indexed: Any) -> None:
    events = [json.loads(line) for line in kb("events", "--json").stdout.splitlines()]
    assert [e["position"] for e in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.md", b""),
        ("wrong.pdf", b"MZ\x90\x00\x03" + bytes(200)),
        ("broken.docx", b"PK\x03\x04" + bytes(50)),
        ("latin.txt", b"\xff\xfe\xfa\x00\x80 broken \xc3\x28"),
    ],
)
def test_a_bad_file_is_one_line_and_the_next_goes_through(
    kb: Kb, tmp_path: Path, name: str, content: bytes
) -> None:
    bad, good = tmp_path / name, tmp_path / "good.md"
    bad.write_bytes(content)
    good.write_text(f"# After {name}\n\nThis one is fine and has enough words to be read.\n")
    done = kb("ingest", str(bad), str(good), exit_code=1)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"error: {bad}: ")
    assert done.stdout.startswith(f"{good}: indexed, ")


def test_a_file_beyond_the_limit_is_one_line(kb: Kb, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.md"
    with sparse.open("wb") as file:
        file.truncate(10 * 1024**3)
    done = kb("ingest", str(sparse), exit_code=1)
    assert len(done.stderr.splitlines()) == 1
    assert "too-large" in done.stderr


def test_after_kill_9_of_the_supervisor_everything_is_still_there(kb: Kb, indexed: Any) -> None:
    before = kb.json("doc", "list")["documents"]
    state = read_state(kb.data)
    assert state is not None
    psutil.Process(state.supervisor.pid).kill()
    report = kb.json("up", "--detach")
    assert report["url"] == kb.report["url"]
    assert kb.json("doc", "list")["documents"] == before
    assert kb.json("query", "maximum fine", "--top-k", "1")["results"]
    assert kb("ingest", indexed["file"]).stdout.endswith(": duplicate\n")
