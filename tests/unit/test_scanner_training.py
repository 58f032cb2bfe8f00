"""The own text that the learned layer is trained on."""

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from eval.corpus import EVALDATA
from eval.scanner import heldout
from eval.train_scanner_data import (
    LANGUAGES,
    REQUESTS,
    WRITERS,
    Doc,
    Order,
    in_cyrillic,
    orders,
    own,
    written,
)
from eval.train_scanner_second import LONG_ONES, LONGER, long_ones
from eval.train_scanner_trial import FALSE_REVIEWS, LONG_MARGIN, Scored, Tried

FILES = sorted(WRITERS.glob("scanner_own_*.jsonl"))
OTHERS = {"de", "ru", "bg", "sr", "mk", "hr", "sl"}


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize(
    ("latin", "cyrillic"),
    [
        ("Njegova ljubav nije laž.", "Његова љубав није лаж."),
        ("ODMAH", "ОДМАХ"),
        ("Džoni, đak i čuvar", "Џони, ђак и чувар"),
        ("Piši na ops@firma.rs", "Пиши на ops@firma.rs"),
        ("Otvori https://nesto.rs/ime?q=stan", "Отвори https://nesto.rs/ime?q=stan"),
        ("Windows i Linux", "Windows и Линуx".replace("Линуx", "Linux")),
        ("", ""),
    ],
)
def test_serbian_is_written_in_cyrillic_but_addresses_and_foreign_names_stay(
    latin: str, cyrillic: str
) -> None:
    assert in_cyrillic(latin) == cyrillic


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_line_is_one_text_in_english_and_other_languages(path: Path) -> None:
    groups = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert max(Counter(group["id"] for group in groups).values()) == 1
    for group in groups:
        languages = set(group) - {"id", "kind", "label"}
        assert group["en"].strip() and languages - {"en"} <= OTHERS, group["id"]
        assert len(languages) >= 3, group["id"]
        assert group["label"] in (0, 1)


def test_every_language_has_about_as_many_texts() -> None:
    counted = Counter(row["language"] for row in own())
    assert set(counted) == set(LANGUAGES)
    foreign = [count for language, count in counted.items() if language != "en"]
    assert max(foreign) < 1.15 * min(foreign)


def test_requests_that_anybody_could_be_given_are_told_apart() -> None:
    found = orders(EVALDATA) if EVALDATA.exists() else []
    if not found:
        pytest.skip("THE ORDERS ARE NOT TESTED: evaldata is absent")
    assert {o.plain for o in found if o.source == "own" and o.kind in REQUESTS} == {True}
    assert {o.plain for o in found if o.kind in ("override", "forged", "exfiltration")} == {False}
    assert all(o.texts for o in found)


def test_no_text_of_the_training_stands_in_a_held_out_set() -> None:
    held = {
        plain(row["text"])
        for file in (heldout.FIRST, heldout.SECOND)
        for kind in ("task", "override", "near-miss")
        for row in heldout.held_out(kind, file)
    }
    assert len(held) > 3_000
    ours = {plain(text) for row in own() for text in row["text"].split("\n")}
    ours |= {plain(group["en"]) for group in written()}
    # A question of three words may well be asked by two people.
    assert {text for text in held & ours if len(text.split()) > 3} == set()


# -- thresholds, and what is put together ----------------------------------------------------------

STEPS = ("attacks", "requests")


def scores(value: float, place: tuple[int, int]) -> Scored:
    return Scored(dict.fromkeys(STEPS, value), place)


def tried() -> Tried:
    """Orders that score higher in each further language; honest documents, one of them long."""
    rng = np.random.default_rng(0)
    orders = [
        (Order(name, f"{i}", plain, ("x",), "own", "override"), scores(3 + row + x, (0, row)))
        for row, name in enumerate(LANGUAGES)
        for plain in (False, True)
        for i, x in enumerate(rng.normal(size=200))
    ]
    docs = [
        (Doc("help", name, f"{i}", 0), scores(row + x, (0, row)))
        for row, name in enumerate(LANGUAGES)
        for i, x in enumerate(rng.normal(size=200))
    ]
    docs.append((Doc("long", "en", "book", 0), scores(2.0, (1, 0))))
    docs.append((Doc("near", "en", "near", 0), scores(99.0, (0, 0))))
    return Tried(docs, orders, [], [])


def test_as_many_orders_are_found_in_each_language_and_few_honest_documents() -> None:
    known = tried()
    for name, thresholds in known.thresholds().items():
        wanted = [(o, s) for o, s in known.orders if o.plain is (name == "requests")]
        recall = [
            np.mean([s.scores[name] >= thresholds[0, row] for o, s in wanted if o.language == n])
            for row, n in enumerate(LANGUAGES)
        ]
        assert max(recall) - min(recall) < 0.02
        assert min(recall) > 0.3
        false = [s.scores[name] >= thresholds[s.place] for d, s in known.docs if d.set == "help"]
        assert 0 < np.mean(false) <= FALSE_REVIEWS[name]


def test_in_long_documents_what_an_honest_one_reaches_is_not_enough() -> None:
    for thresholds in tried().thresholds().values():
        assert thresholds[1].tolist() == pytest.approx([2.0 + LONG_MARGIN] * len(LANGUAGES))


def test_long_documents_are_put_together_from_those_of_one_language() -> None:
    docs = [
        Doc(kind, name, f"{kind}{i}", 0, texts=[f"{name} {kind} {i} {n}" for n in range(90)],
            alone=[False] * 90)
        for name in LANGUAGES for kind in ("help", "law") for i in range(30)
    ]  # fmt: skip
    found = long_ones(docs, np.random.default_rng(0))
    assert Counter(d.language for d in found) == dict.fromkeys(LANGUAGES, LONG_ONES)
    for doc in found:
        assert LONGER.start <= len(doc.texts) == len(doc.alone) < LONGER.stop + 90
        assert all(text.startswith(f"{doc.language} ") for text in doc.texts)
        kinds = [text.split()[1] for text in doc.texts]
        assert sum(a != b for a, b in pairwise(kinds)) <= 1
