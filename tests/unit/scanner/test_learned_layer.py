"""The learned layer without its real weights: what it reads of a document, and what it says."""

import base64
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from contracts.artifacts import HiddenText
from services.scanner.learned.encoder import Floats, Ids
from services.scanner.learned.layer import LOOKED_AT, Layer, chosen
from services.scanner.learned.model import (
    CLEARLY_TUNED,
    CLEARLY_UNTUNED,
    FEW,
    LONG,
    Document,
    Model,
    SecondStep,
    packed,
    unpacked,
    width,
)
from services.scanner.learned.reading import squeezed

WORDS = 3
"""Tokens of the toy: 0 for any word, 1 for `about`, 2 for `order`."""


def step(feature: int = 0, *, bias: float = 0.0, threshold: float = 0.0) -> SecondStep:
    """Judges by one feature alone."""
    size = width(2)
    weights = np.zeros(size + size * (size + 1) // 2, np.float32)
    weights[feature] = 1
    return SecondStep(
        mean=np.zeros(size, np.float32),
        scale=np.ones(size, np.float32),
        weights=weights,
        bias=bias,
        thresholds=np.full((2, 1), threshold, np.float32),
    )


def model(threshold: float = 0.0) -> Model:
    """An order is a window with the word `order`: the first feature decides."""
    return Model(
        adapter={},
        scores=np.array([[0, 0, 4], [0, 1, 0]], np.float32),
        scores_bias=np.array([-1, -1], np.float32),
        places=np.zeros((1, 2), np.float32),
        gate=np.array([0, 0, 1], np.float32),
        topic=0,
        untuned=WORDS,
        steps={"attacks": step(threshold=threshold)},
    )


class Toy:
    """Counts words; remembers how many windows it was given."""

    def __init__(self) -> None:
        self.encoded = self.looked_at = 0
        self.inside = self.most_inside = 0

    def tokens(self, texts: Sequence[str]) -> list[Ids]:
        table = {"about": 1, "order": 2}
        return [np.array([table.get(w, 0) for w in t.split()] or [0], np.int32) for t in texts]

    def vectors(self, windows: Sequence[Ids]) -> Floats:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.encoded += len(windows)
        found = self._counted(windows)
        self.inside -= 1
        return found

    def first_vectors(self, windows: Sequence[Ids]) -> Floats:
        self.looked_at += len(windows)
        return self._counted(windows)

    def _counted(self, windows: Sequence[Ids]) -> Floats:
        found = [np.bincount(w, minlength=WORDS).clip(max=1) for w in windows]
        return np.array(found, np.float32)

    def word_scores(self, direction: Floats) -> Floats:
        return direction


def layer(most: int = 64) -> tuple[Layer, Toy]:
    toy = Toy()
    return Layer(toy, model(), most=most, threads=1), toy


LINE = "plain words of a plain line\n"
ORDER = "here comes an order to you\n"


def said(text: str, found: Sequence[tuple[int | None, int, int]]) -> list[str]:
    return [squeezed(text[start:end]) for _, start, end in found]


def test_the_passage_is_the_window_in_the_text() -> None:
    text = f"{LINE * 3}\n\n{ORDER}\n\n{LINE * 3}"
    found, _ = layer()
    ((_, start, end),) = found.passages(text)
    assert text[start:end] == ORDER.strip(), "with no blank around it"


def test_a_text_without_an_order_has_no_passage() -> None:
    assert layer()[0].passages(LINE * 20) == []


@pytest.mark.parametrize("text", ["", "\n\n", "1 2 3", "…" * 1000])
def test_a_text_without_words_has_no_passage(text: str) -> None:
    assert layer()[0].passages(text) == []


def test_a_passage_in_hidden_text_has_its_number() -> None:
    hidden = (HiddenText(kind="metadata", text="a title"), HiddenText(kind="comment", text=ORDER))
    assert layer()[0].passages(LINE * 3, hidden) == [(1, 0, len(ORDER.strip()))]


def test_meta_are_judged_beside_the_document_and_do_not_change_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Document] = []
    judge = Model.judge

    def seeing(self: Model, document: Document) -> list[tuple[int, float]]:
        seen.append(document)
        return judge(self, document)

    monkeypatch.setattr(Model, "judge", seeing)
    title = HiddenText(kind="metadata", text="the name of a file")
    order = HiddenText(kind="metadata", text=ORDER)
    assert layer()[0].passages(LINE * 3, (title, order)) == [(1, 0, len(ORDER.strip()))]
    layer()[0].passages(LINE * 3)
    with_meta, bare = seen
    assert with_meta.total == bare.total == len(bare.numbers)
    assert list(with_meta.numbers[with_meta.sample]) == list(bare.numbers)
    assert not any(abs(n - bare.numbers[-1]) == 1 for n in with_meta.numbers[~with_meta.sample])


def test_meta_without_a_text_are_judged_by_themselves() -> None:
    order = HiddenText(kind="metadata", text=ORDER)
    names = [HiddenText(kind="metadata", text="the name of a file")] * 2
    assert layer()[0].passages("", (order, *names)) == [(0, 0, len(ORDER.strip()))]


def test_of_a_long_text_only_so_many_windows_are_encoded() -> None:
    found, toy = layer(most=64)
    found.passages(LINE * 5_000)
    assert toy.encoded <= 64
    assert 64 < toy.looked_at <= LOOKED_AT * 64


def test_a_text_that_is_not_too_long_is_looked_at_as_a_whole() -> None:
    found, toy = layer(most=64)
    found.passages(LINE * 1_000)
    assert toy.looked_at == 1_000
    assert toy.encoded <= 64


@pytest.mark.parametrize("at", [0, 1, 777, 999])
def test_the_first_layers_see_what_the_words_alone_do_not(at: int) -> None:
    """The word look is blind here, so only the look of the layers can find the order."""
    found = Layer(Toy(), replace(model(), gate=np.zeros(3, np.float32)), most=64, threads=1)
    text = LINE * at + ORDER + LINE * (1_000 - at)
    assert said(text, found.passages(text)) == [ORDER.strip()]


@pytest.mark.parametrize("total", [1, 2, 63, 64, 65, 100, 5_000])
def test_of_many_windows_half_are_chosen_by_their_looks_and_half_evenly(total: int) -> None:
    looks = np.zeros(total, np.float32)
    looks[total // 3] = 1
    rows, even = chosen(looks, 64)
    assert len(rows) == len(even) == len(set(rows.tolist())) <= 64
    assert rows.tolist() == sorted(rows.tolist())
    assert total // 3 in rows
    assert (rows[0], rows[-1]) == (0, total - 1)
    if total <= 64:
        assert even.all() and len(rows) == total
    else:
        assert even.sum() == 32
        gaps = np.diff(rows[even])
        assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("at", [0, 1, 2_499, 4_999])
def test_an_order_in_a_long_text_is_among_those_that_are_encoded(at: int) -> None:
    found, _ = layer(most=64)
    text = LINE * at + ORDER + LINE * (5_000 - at)
    assert said(text, found.passages(text)) == [ORDER.strip()]


def test_all_windows_of_a_short_text_are_encoded() -> None:
    found, toy = layer(most=64)
    found.passages(LINE * 64)
    assert toy.encoded == 64


def test_threads_take_turns() -> None:
    found, toy = layer()
    text = LINE * 30 + ORDER
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(len(found.passages(text)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 8
    assert toy.most_inside == 1


def test_the_threshold_decides() -> None:
    below = Layer(Toy(), model(threshold=3.5), most=64, threads=1)
    assert below.passages(LINE + ORDER) == []


def document(vectors: Floats) -> Document:
    n = len(vectors)
    return Document(
        vectors, np.arange(n), n, np.ones(n, np.bool_), np.full(n, 20), np.ones(n, np.bool_)
    )


def test_a_document_of_one_window_has_finite_features() -> None:
    rows, features = model().features(document(np.ones((1, WORDS), np.float32)))
    assert rows.tolist() == [0]
    assert np.isfinite(features).all()


def test_vectors_without_a_direction_have_finite_features() -> None:
    _, features = model().features(document(np.zeros((5, WORDS), np.float32)))
    assert np.isfinite(features).all()


def test_scores_are_rounded_so_that_the_last_bit_decides_nothing() -> None:
    vectors = np.random.default_rng(0).random((40, WORDS)).astype(np.float32)
    shaken = vectors * np.float32(1 + 1e-6)
    assert model().judge(document(vectors)) == model().judge(document(shaken))


def test_a_packed_model_is_the_same_again() -> None:
    down, up = np.ones((3, 2), np.float32), np.full((2, 3), 0.5, np.float32)
    steps = {"attacks": step(bias=2.0, threshold=1.25), "requests": step(1, threshold=0.5)}
    known = replace(model(), steps=steps, adapter={"l2.q": (down, up)})
    again = unpacked(packed(known))
    assert packed(again) == packed(known)
    assert list(again.steps) == list(steps)
    assert again.steps["attacks"].bias == 2.0
    assert again.steps["requests"].thresholds.tolist() == [[0.5], [0.5]]
    assert (again.topic, again.untuned) == (0, WORDS)
    vectors = np.eye(WORDS, dtype=np.float32)
    assert again.judge(document(vectors)) == known.judge(document(vectors))
    assert [a.tolist() for a in again.adapter["l2.q"]] == [down.tolist(), up.tolist()]


def test_one_of_the_second_steps_is_enough() -> None:
    """The first one finds `order`, the second one `about`."""
    clear = np.array([[0, 0, 4], [0, 3, 0]], np.float32)
    both = replace(model(), scores=clear, steps={"attacks": step(), "requests": step(1)})
    found = dict(both.judge(document(np.eye(WORDS, dtype=np.float32))))
    assert [row for row, margin in found.items() if margin >= 0] == [1, 2]
    strict = {"attacks": step(threshold=3.5), "requests": step(1, threshold=2.5)}
    found = dict(replace(both, steps=strict).judge(document(np.eye(WORDS, dtype=np.float32))))
    assert max(found.values()) < 0


def test_each_language_has_its_threshold() -> None:
    """The language is that of the place which the document is nearest to."""
    lenient, strict = [0.0, 0.0], [9.0, 0.0]
    places = np.array([lenient, strict], np.float32)
    known = replace(
        model(),
        places=places,
        steps={"attacks": replace(step(), thresholds=np.array([[0, 4]] * 2, np.float32))},
    )
    ordinary = np.array([[0, 0, 1], [0, 0, 0]], np.float32)
    assert max(margin for _, margin in known.judge(document(ordinary))) == 3
    foreign = ordinary + np.array([9, 0, 0], np.float32)
    assert max(margin for _, margin in known.judge(document(foreign))) == -1


def test_long_documents_have_a_threshold_of_their_own() -> None:
    known = replace(
        model(), steps={"attacks": replace(step(), thresholds=np.array([[4], [0]], np.float32))}
    )
    toy = Layer(Toy(), known, most=64, threads=1)
    assert toy.passages(LINE * 40 + ORDER) == []
    assert len(toy.passages(LINE * LONG + ORDER)) == 1


def test_a_window_that_reads_like_nothing_is_no_order_whatever_stands_around_it() -> None:
    sure = replace(model(), steps={"attacks": step(bias=50.0)})
    vectors = np.array([[0, 0, 0]] * FEW + [[0, 0, 1]], np.float32)
    found = dict(sure.judge(document(vectors)))
    assert found[FEW] > 50 and found[0] == pytest.approx(49.0)
    quiet = replace(sure, scores_bias=np.array([-1.5, -1.5], np.float32))
    assert dict(quiet.judge(document(vectors)))[0] < 0


@pytest.mark.parametrize(("tuned", "least"), [(True, CLEARLY_TUNED), (False, CLEARLY_UNTUNED)])
def test_in_a_document_of_few_windows_an_order_reads_like_one_by_itself(
    tuned: bool, least: float
) -> None:
    """Beside little else every sentence is off the subject."""
    known = replace(model(), untuned=0 if tuned else WORDS, steps={"attacks": step(bias=50.0)})

    def found(score: float, windows: int) -> bool:
        vectors = np.zeros((windows, WORDS), np.float32)
        vectors[0, 2] = (score + 1) / 4
        return dict(known.judge(document(vectors)))[0] >= 0

    assert not found(least - 0.1, FEW)
    assert found(least + 0.1, FEW)
    assert found(least - 0.1, FEW + 1)


def test_in_a_document_of_few_windows_a_request_need_not_read_like_an_attack() -> None:
    """It is one by its mood and by standing apart, and a mail of three sentences has both."""
    asks = replace(model(), steps={"requests": step(bias=50.0)})
    assert dict(asks.judge(document(np.zeros((FEW, WORDS), np.float32))))[0] >= 0


@pytest.mark.parametrize(
    "gibberish",
    [
        base64.b64encode(hashlib.sha512(b"a picture").digest()).decode(),
        hashlib.sha256(b"a file").hexdigest(),
        "0b9c6f0e-1f5d-4d6e-9a3c-7a1e5d2c4b8f",
    ],
)
def test_keys_and_hashes_are_not_read(gibberish: str) -> None:
    assert squeezed(f"the key {gibberish} is old") == "the key is old"
    judging, toy = layer()
    judging.passages(f"{LINE}{gibberish}\n{gibberish}\n{LINE}")
    assert toy.encoded == 2


@pytest.mark.parametrize(
    "name", ["getUserNameFromDatabaseById", "https://example.org/2024/05/12/what-the-choir-sang"]
)
def test_long_names_and_addresses_are_read(name: str) -> None:
    assert squeezed(f"see {name} for more") == f"see {name} for more"
