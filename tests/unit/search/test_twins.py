"""Near-identical passages are one, and what makes a difference keeps them apart."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.artifacts import embedded_text
from services.search import twins
from services.search.domain import Fused
from services.search.legs import Candidate
from services.search.twins import fold_twins

LONG = (
    "A person who operates a vehicle on a public road shall carry the licence at all times and "
    "show it to an officer who asks for it in the course of duty, and the officer shall return it "
    "to the person as soon as it was read, unless the law of the place where this happens says so "
    "in words that leave no doubt about what was meant by those who made it."
)


def passage(text: str, number: int = 0, **more: Any) -> Candidate:
    """A candidate with this passage, of a document of its own."""
    row = {
        "version_id": f"v{number}", "document_id": f"d{number}", "title": f"Title {number}",
        "heading_path": ["Act", f"Part {number}"], **more,
    }  # fmt: skip
    row["text"] = embedded_text(row["title"], tuple(row["heading_path"]), "", text)
    return Candidate(Fused(f"{number}", 1 / (60 + number), None, None), row)  # type: ignore[arg-type]


def folded(*texts: str) -> list[list[int]]:
    """Numbers of texts, in groups of twins."""
    shown = fold_twins([passage(text, number) for number, text in enumerate(texts)], 99)
    return [[int(str(c.fused.key)) for c in (first, *first.twins)] for first in shown]


@pytest.mark.parametrize(
    "twin",
    [
        LONG,
        LONG.upper(),
        LONG.replace(", ", " –\n "),
        LONG.replace("vehicle", "car"),
        f"{LONG[:-1]} indeed.",
    ],
)
def test_what_says_the_same_in_another_document_is_one(twin: str) -> None:
    assert folded(LONG, "Something else.", twin) == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{LONG} The fine is 20 euro.", f"{LONG} The fine is 50 euro."),
        (LONG, LONG.replace("shall carry", "shall not carry")),
        (LONG, LONG.replace("unless", "because")),
        (LONG.replace("shall", "does"), LONG.replace("shall", "doesn't")),
        (LONG, LONG[: len(LONG) // 2]),
        ("Лице, което управлява, носи документ.", "Лице, което управлява, не носи документ."),
        ("Bread is good.", "Butter is good."),
        (LONG, LONG.replace("shall return", "may return")),
        (f"{LONG} {LONG} To Alice.", f"{LONG} {LONG} To Carol."),
        (f"{LONG} Zahlt der Käufer.", f"{LONG} Zahlt der Verkäufer."),
        (f"{LONG} Лицето трябва да плати.", f"{LONG} Лицето може да плати."),
    ],
)
def test_what_makes_a_difference_keeps_passages_apart(one: str, other: str) -> None:
    assert folded(one, other) == [[0], [1]]


def test_headings_tell_passages_of_one_version_apart() -> None:
    same = {"version_id": "v", "document_id": "d", "title": "T"}
    candidates = [
        passage("Repealed.", n, **same, heading_path=path)
        for n, path in enumerate([["Art. 5"], ["Art. 6"], ["Art. 5"]])
    ]
    assert [len(c.twins) for c in fold_twins(candidates, 99)] == [1, 0]


def test_of_the_versions_of_a_document_only_equal_words_are_one() -> None:
    texts = [LONG, LONG.replace("vehicle", "car"), LONG.upper()]
    shown = fold_twins([passage(t, n, document_id="d") for n, t in enumerate(texts)], 99)
    assert [len(c.twins) for c in shown] == [1, 0]


@given(st.lists(st.sampled_from([LONG, LONG.replace("road", "way"), "a b", "a B", "c", ""])))
def test_nothing_is_lost_and_the_order_stays(texts: list[str]) -> None:
    groups = folded(*texts)
    assert sorted(n for group in groups for n in group) == list(range(len(texts)))
    assert [g[0] for g in groups] == sorted(g[0] for g in groups)
    assert all(group == sorted(group) for group in groups)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 99), max_size=5)), max_size=12)
)
def test_nothing_that_is_alike_is_overlooked(edits: list[tuple[int, list[int]]]) -> None:
    """The first of those shown to which a text is a twin, as by comparing it with all of them."""
    candidates = []
    for number, (start, changed) in enumerate(edits):
        words = [f"w{chr(97 + (n * 7 + start) % 26)}{chr(97 + n // 4)}" for n in range(100)]
        for place in changed:
            words[place] = "other"
        candidates.append(passage(" ".join(words), number))
    groups: list[list[Any]] = []
    for candidate in candidates:
        text = twins._Text(candidate, twins._words(candidate))
        group = next((g for g in groups if text.is_twin_of(g[0])), None)
        (groups.append([text]) if group is None else group.append(text))
    found = [[c, *c.twins] for c in fold_twins(candidates, 99)]
    assert [[c.fused.key for c in group] for group in found] == [
        [t.candidate.fused.key for t in group] for group in groups
    ]


def test_behind_the_first_ones_nothing_is_folded_together() -> None:
    texts = ["a", "b", "b", "a", "b"]
    shown = fold_twins([passage(text, number) for number, text in enumerate(texts)], 1)
    assert [len(c.twins) for c in shown] == [1, 0, 0, 0]
