"""The reranker, with the true model class on tiny random weights, and a real HTTP server."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from services.search.rerank import (
    CrossEncoderReranker,
    Reading,
    RemoteReranker,
    RerankerError,
    RerankerSettings,
    by_reading,
    open_reranker,
)

PASSAGES = ["the fine is high", "water is wet", "the court rules"]


def tiny_model(folder: Path, labels: int = 1) -> Path:
    """A cross-encoder folder as the hub has them: two small layers of random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *" ".join(PASSAGES).split(), "what", "a"]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    config.num_labels = labels
    BertForSequenceClassification(config).save_pretrained(folder)
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # so in transformers 5
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
async def reranker(folder: Path) -> AsyncIterator[CrossEncoderReranker]:
    opened = CrossEncoderReranker(str(folder), deadline=30)
    await opened.loaded()
    yield opened
    await opened.aclose()


async def test_each_passage_has_a_score_from_0_to_1(reranker: CrossEncoderReranker) -> None:
    reading = await reranker.read("what fine", PASSAGES)
    assert reading.skipped is None
    assert len(set(reading.scores)) == 3
    assert all(0 < score < 1 for score in reading.scores)


async def test_the_score_is_the_sigmoid_of_the_model(
    reranker: CrossEncoderReranker, folder: Path
) -> None:
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        pair = tokenizer("what fine", PASSAGES[0], return_tensors="pt")
        expected = torch.sigmoid(model(**pair).logits)[0, 0].item()
    assert (await reranker.read("what fine", PASSAGES)).scores[0] == pytest.approx(expected)


async def test_scores_do_not_depend_on_the_other_passages(reranker: CrossEncoderReranker) -> None:
    together = (await reranker.read("what fine", PASSAGES)).scores
    alone = [(await reranker.read("what fine", [p])).scores[0] for p in PASSAGES]
    assert list(together) == pytest.approx(alone)


async def test_a_passage_beyond_the_model_is_cut(reranker: CrossEncoderReranker) -> None:
    reading = await reranker.read("what " * 500, ["fine " * 5000, ""])
    assert len(reading.scores) == 2


async def test_no_passages_need_no_model(reranker: CrossEncoderReranker) -> None:
    assert await reranker.read("what", []) == Reading()


async def test_no_question_waits_for_the_load(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import services.search.rerank as module

    go, load = threading.Event(), module._load

    def slow(name: str, threads: int) -> Any:
        go.wait(30)
        return load(name, threads)

    monkeypatch.setattr(module, "_load", slow)
    reranker = CrossEncoderReranker(str(folder))
    assert await reranker.read("what", PASSAGES) == Reading(skipped="loading")
    go.set()
    await reranker.loaded()
    assert reranker.state == "ready"
    assert (await reranker.read("what", PASSAGES)).scores
    await reranker.aclose()


async def test_a_model_that_is_not_there_fails_only_itself(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker(str(tmp_path / "none"))
    with pytest.raises(Exception, match="none"):
        await reranker.loaded()
    assert await reranker.read("what", PASSAGES) == Reading(skipped="failed")
    await reranker.aclose()


async def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker(str(tiny_model(tmp_path, labels=3)))
    with pytest.raises(RerankerError, match="3 scores"):
        await reranker.loaded()
    assert reranker.state == "failed"
    await reranker.aclose()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[str]]:
    """The model stops at each passage until the event is set; the passages that it has read."""
    import services.search.rerank as module

    go, seen = threading.Event(), list[str]()

    def read(_: Any, __: str, passage: str) -> float:
        seen.append(passage)
        go.wait(30)
        return 0.5

    monkeypatch.setattr(module, "_probability", read)
    return go, seen


async def test_a_late_model_is_left_behind_and_gives_up(
    folder: Path, held: tuple[threading.Event, list[str]]
) -> None:
    go, seen = held
    reranker = CrossEncoderReranker(str(folder), deadline=0.05)
    await reranker.loaded()
    assert await reranker.read("what", PASSAGES) == Reading(skipped="late")
    assert await reranker.read("what", PASSAGES) == Reading(skipped="busy")
    go.set()
    await reranker.aclose()
    assert seen == PASSAGES[:1]


async def test_a_cancelled_question_frees_the_model(
    reranker: CrossEncoderReranker, held: tuple[threading.Event, list[str]]
) -> None:
    go, seen = held
    asked = asyncio.create_task(reranker.read("what", PASSAGES[:1]))
    while not seen:
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    go.set()
    while (reading := await reranker.read("what", PASSAGES)).skipped == "busy":
        await asyncio.sleep(0)
    assert len(reading.scores) == 3


async def test_scores_that_are_no_numbers_are_no_scores(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import services.search.rerank as module

    monkeypatch.setattr(module, "_probability", lambda *_: float("nan"))
    assert await reranker.read("what", PASSAGES) == Reading(skipped="failed")


class Endpoint:
    """What the server was asked, and what it answers."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str | None, Any]] = []
        self.status = 200
        self.answer: Any = None
        self.go = threading.Event()
        self.go.set()


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.asked.append((self.path, self.headers["authorization"], body))
            endpoint.go.wait(30)
            answer = endpoint.answer
            if answer is None:
                rows = [{"index": i, "score": len(t) / 100} for i, t in enumerate(body["texts"])]
                answer = sorted(rows, key=lambda row: -row["score"])
            reply = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(endpoint.status)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield
    endpoint.go.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    with serving(made):
        yield made


@pytest.mark.parametrize("path", ["", "/", "/rerank"])
async def test_an_endpoint_is_asked_and_its_order_undone(endpoint: Endpoint, path: str) -> None:
    reranker = RemoteReranker(endpoint.url + path, api_key="secret")
    reading = await reranker.read("what", PASSAGES)
    await reranker.aclose()
    assert reading == Reading(tuple(len(p) / 100 for p in PASSAGES))
    sent = {"query": "what", "texts": PASSAGES, "raw_scores": False, "truncate": True}
    assert endpoint.asked == [("/rerank", "Bearer secret", sent)]


@pytest.mark.parametrize(
    ("status", "answer", "skipped"),
    [
        (503, [], "away"),
        (401, [], "away"),
        (200, b"not json", "failed"),
        (200, {"error": "x"}, "failed"),
        (200, [], "failed"),
        (200, [{"index": i, "score": 7.5} for i in range(3)], "failed"),
        (200, [{"index": i, "score": None} for i in range(3)], "failed"),
        (200, [{"index": 0, "score": 0.5}] * 3, "failed"),
    ],
)
async def test_a_bad_answer_is_no_answer(
    endpoint: Endpoint, status: int, answer: Any, skipped: str
) -> None:
    endpoint.status, endpoint.answer = status, answer
    reranker = RemoteReranker(endpoint.url)
    assert (await reranker.read("what", PASSAGES)).skipped == skipped
    await reranker.aclose()


async def test_a_slow_endpoint_is_left_behind(endpoint: Endpoint) -> None:
    endpoint.go.clear()
    reranker = RemoteReranker(endpoint.url, deadline=0.05)
    assert await reranker.read("what", PASSAGES) == Reading(skipped="late")
    await reranker.aclose()


async def test_an_endpoint_that_is_away_is_skipped() -> None:
    endpoint = Endpoint()
    with serving(endpoint):
        pass
    reranker = RemoteReranker(endpoint.url)
    assert await reranker.read("what", PASSAGES) == Reading(skipped="away")
    await reranker.aclose()


async def test_settings_choose(folder: Path, endpoint: Endpoint) -> None:
    assert open_reranker(RerankerSettings()) is None
    local = open_reranker(RerankerSettings(reranker=str(folder)))
    assert isinstance(local, CrossEncoderReranker)
    remote = open_reranker(RerankerSettings(reranker=str(folder), reranker_url=endpoint.url))
    assert isinstance(remote, RemoteReranker)
    await local.aclose()
    await remote.aclose()


def test_the_first_are_ordered_by_their_scores_and_the_rest_stays_behind() -> None:
    assert by_reading(["a", "b", "c", "d"], [0.1, 0.9, 0.1]) == [
        ("b", 0.9),
        ("a", 0.1),
        ("c", 0.1),
        ("d", None),
    ]
    assert by_reading(["a"], []) == [("a", None)]
    assert by_reading([], []) == []
