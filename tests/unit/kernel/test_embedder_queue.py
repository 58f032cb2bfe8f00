"""Order at a model, proven with a model that waits to be told to go on."""

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from kernel.embedder.base import EmbedderError, Matrix, Vector
from kernel.embedder.queue import DOCUMENT, QUERY, QueuedEmbedder, Turnstile, batches
from kernel.errors import Retry


class Gate:
    """A model that notes what it is asked, and answers when it is let."""

    model_id, dim, max_tokens = "gate", 2, 100

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.entered = asyncio.Event()
        self._permits = asyncio.Semaphore(0)
        self.running = self.most = 0
        self.closed = False

    def let(self, number: int = 1) -> None:
        for _ in range(number):
            self._permits.release()

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        await self._work("+".join(texts))
        return np.array([[len(text), 0] for text in texts], dtype=np.float32)

    async def embed_query(self, text: str) -> Vector:
        await self._work(f"?{text}")
        return np.array([len(text), 1], dtype=np.float32)

    async def aclose(self) -> None:
        self.closed = True

    async def _work(self, what: str) -> None:
        self.asked.append(what)
        self.running += 1
        self.most = max(self.most, self.running)
        self.entered.set()
        try:
            await self._permits.acquire()
        finally:
            self.running -= 1
        if "bad" in what:
            raise Retry("the model is away")


async def until(queue: QueuedEmbedder, waiting: int) -> None:
    """Let other tasks run until so many stand in the queue."""
    async with asyncio.timeout(10):
        while queue.waiting < waiting:
            await asyncio.sleep(0)


async def test_a_question_waits_for_one_batch_at_most() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=2)
    documents = asyncio.create_task(queue.embed_documents(["aa", "bb", "cc"]))
    await gate.entered.wait()
    question = asyncio.create_task(queue.embed_query("q"))
    await until(queue, 1)
    gate.let(4)
    await asyncio.gather(documents, question)
    assert gate.asked == ["aa", "?q", "bb", "cc"]


async def test_questions_pass_all_waiting_documents() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=2)
    first = asyncio.create_task(queue.embed_documents(["aa"]))
    await gate.entered.wait()
    tasks = [first]
    for number, text in enumerate(["bb", "cc"], start=1):
        tasks.append(asyncio.create_task(queue.embed_documents([text])))
        await until(queue, number)
    questions = []
    for number, text in enumerate("xy", start=3):
        questions.append(asyncio.create_task(queue.embed_query(text)))
        await until(queue, number)
    gate.let(5)
    await asyncio.gather(*tasks, *questions)
    assert gate.asked == ["aa", "?x", "?y", "bb", "cc"]


async def test_the_model_is_never_asked_twice_at_once() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=2)
    gate.let(100)
    await asyncio.gather(
        *(queue.embed_documents(["aa", "bb"]) for _ in range(10)),
        *(queue.embed_query("q") for _ in range(10)),
    )
    assert gate.most == 1


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    gate = Gate()
    gate.let(10)
    texts = ["dddd", "a", "ccc", "bb", "", "ccc"]
    vectors = await QueuedEmbedder(gate, batch_tokens=6).embed_documents(texts)
    assert vectors[:, 0].tolist() == [4, 1, 3, 2, 0, 3]
    assert gate.asked == ["+a+bb", "ccc+ccc", "dddd"]


async def test_no_texts_need_no_model() -> None:
    assert (await QueuedEmbedder(Gate()).embed_documents([])).shape == (0, 2)


async def test_a_caller_who_gives_up_while_waiting_is_passed_over() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=2)
    first = asyncio.create_task(queue.embed_documents(["aa"]))
    await gate.entered.wait()
    impatient = asyncio.create_task(queue.embed_query("gone"))
    patient = asyncio.create_task(queue.embed_query("here"))
    await until(queue, 2)
    impatient.cancel()
    gate.let(2)
    await asyncio.gather(first, patient)
    assert gate.asked == ["aa", "?here"]
    assert impatient.cancelled()


async def test_a_caller_who_gives_up_at_the_model_frees_it() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate)
    first = asyncio.create_task(queue.embed_query("first"))
    await gate.entered.wait()
    second = asyncio.create_task(queue.embed_query("second"))
    await until(queue, 1)
    first.cancel()
    gate.let()
    assert (await second)[0] == len("second")


async def test_a_turn_given_to_a_caller_who_just_gave_up_is_passed_on() -> None:
    turnstile = Turnstile()
    order: list[str] = []

    async def use(name: str) -> None:
        async with turnstile.turn(QUERY):
            order.append(name)

    async with turnstile.turn(QUERY):
        late = asyncio.create_task(use("late"))
        next_ = asyncio.create_task(use("next"))
        while turnstile.waiting < 2:
            await asyncio.sleep(0)
    late.cancel()  # the turn is already his, but he has not woken up yet
    await next_
    assert order == ["next"]
    async with turnstile.turn(DOCUMENT):
        assert turnstile.waiting == 0


async def test_an_error_reaches_its_caller_and_nobody_else() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=3)
    gate.let(10)
    results = await asyncio.gather(
        queue.embed_documents(["bad", "a"]),
        queue.embed_documents(["bb"]),
        queue.embed_query("bad"),
        queue.embed_query("q"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [Retry, np.ndarray, Retry, np.ndarray]


async def test_closing_refuses_those_who_wait_and_finishes_what_runs() -> None:
    gate = Gate()
    queue = QueuedEmbedder(gate, batch_tokens=2)
    running = asyncio.create_task(queue.embed_documents(["aa"]))
    await gate.entered.wait()
    waiting = asyncio.create_task(queue.embed_query("q"))
    await until(queue, 1)
    closing = asyncio.create_task(queue.aclose())
    await until(queue, 2)
    gate.let()
    assert (await running).shape == (1, 2)
    with pytest.raises(EmbedderError, match="closed"):
        await waiting
    await closing
    assert gate.closed
    with pytest.raises(EmbedderError, match="closed"):
        await queue.embed_documents(["late"])


def test_callers_in_several_event_loops_share_one_turnstile() -> None:
    turnstile = Turnstile()
    inside, most, done = 0, 0, 0

    async def use() -> None:
        nonlocal inside, most, done
        async with turnstile.turn(DOCUMENT):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            done += 1

    async def many() -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*(use() for _ in range(50)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=40)
    assert (most, done) == (1, 200)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([5000], [[0]]),
        ([10, 10, 10], [[0, 1], [2]]),
        ([20, 1, 3, 2], [[1, 3, 2], [0]]),
        ([0, 0, 0], [[0, 1, 2]]),
    ],
)
def test_batches_keep_to_padded_tokens(sizes: list[int], expected: list[list[int]]) -> None:
    assert list(batches(sizes, 20)) == expected
