"""How examples for the language model are made."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval import language_texts
from eval.language_words import fit, left_out
from eval.train_language import GENRES, Recipe, Texts, averaged, examples, speech
from eval.train_language import fit as trained

RECIPE = Recipe(each=60, drawn=0.3, shared=0.0, shortest=30, bare=0.0, rate=0.2, running=0.4)
LONG = "riječ " * 800


def _texts(seed: int) -> Texts:
    running = {
        "news:a/b": ["vijest " * 40],
        "news:c/d": ["vijest " * 40],
        "fiction:e/f": ["zakon " * 9],
    }
    return Texts({"package": [LONG]}, [lambda n: "slovo " * (n // 6)], random.Random(seed), running)


def test_an_example_is_running_text_drawn_words_or_messages_by_their_shares() -> None:
    texts, counts = _texts(1), Counter[str]()
    for _ in range(4_000):
        text, drawn = texts.example(60, RECIPE, ())
        word = text.split()[0] if text.split() else ""
        assert drawn == (word == "slovo")
        counts[word] += 1
    assert counts["slovo"] / 4_000 == pytest.approx(0.3, abs=0.03)
    assert counts["riječ"] / 4_000 == pytest.approx(0.3, abs=0.03)
    news, law = counts["vijest"], counts["zakon"]
    assert news / law == pytest.approx(GENRES["news"] / GENRES["fiction"], rel=0.25)


def test_each_class_has_as_many_examples() -> None:
    classes = {code: [_texts(2)] for code in ("hr", "sr")}
    buckets, starts, labels = examples("native", classes, RECIPE, seed=1)
    assert np.bincount(labels).tolist() == [60, 60]
    assert starts[-1] == len(buckets)


def test_words_of_the_other_language_are_taken_out_of_subtitles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heard = {
        "hr": {"djeca": 0.09, "deca": 0.01, "je": 0.9},
        "sr": {"djeca": 0.022, "deca": 0.078, "je": 0.9},
    }
    monkeypatch.setattr(language_texts, "spoken", lambda _, code: heard[code])
    croatian, serbian = (speech(tmp_path)[code] for code in ("hr", "sr"))
    assert croatian["djeca"] == pytest.approx(0.1)
    assert serbian["deca"] == pytest.approx(0.1)
    assert croatian["deca"] < 0.001
    assert serbian["djeca"] < 0.001
    assert croatian["je"] == serbian["je"] == pytest.approx(0.9)


def test_weights_are_judged_on_a_set_that_they_were_not_fitted_on() -> None:
    chance = np.random.default_rng(1)

    def rows(code: str, sign: float) -> np.ndarray:
        score = chance.normal(sign * (1 if code == "sr" else -1), 0.1, 80)
        return np.stack([score, np.ones(80)], axis=1)

    right = {(name, code, 60): rows(code, 1.0) for name in "ab" for code in ("hr", "sr")}
    assert set(left_out(right).values()) == {1.0}
    assert fit(right)[0] > 1
    turned = right | {("c", code, 60): rows(code, -1.0) for code in ("hr", "sr")}
    assert left_out(turned)["c", "hr", 60] == 0.0


def test_the_weights_kept_are_the_mean_over_seeds() -> None:
    recipe = replace(RECIPE, each=4, epochs=1, drawn=0.0, running=0.0, seeds=(2, 5))

    def classes() -> dict[str, list[Texts]]:
        packages = {"hr": "tjedan općina vlak " * 300, "sr": "nedelja opština voz " * 300}
        rng = random.Random(4)
        return {c: [Texts({"a": [text]}, (), rng, {})] for c, text in packages.items()}

    weights, bias = averaged("native", classes(), recipe)
    one_by_one = []
    for seed in recipe.seeds:
        data = examples("native", classes(), recipe, seed)
        one_by_one.append(trained(data, "native", 2, recipe, seed - 1))
    assert not np.array_equal(one_by_one[0][0], one_by_one[1][0])
    np.testing.assert_allclose(weights, (one_by_one[0][0] + one_by_one[1][0]) / 2)
    np.testing.assert_allclose(bias, (one_by_one[0][1] + one_by_one[1][1]) / 2)
