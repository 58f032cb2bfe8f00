"""Is there an answer at all?"""

import pytest

from services.search.answerable import answerable, evidence, fitted, probability

FLAT = [0.50, 0.49, 0.49, 0.48, 0.48, 0.47, 0.40]
AHEAD = [0.80, 0.49, 0.49, 0.48, 0.48, 0.47, 0.40]


def test_a_passage_far_before_the_others_speaks_for_an_answer() -> None:
    flat, ahead = answerable([FLAT], [0.3]), answerable([AHEAD], [0.3])
    assert flat is not None and ahead is not None
    assert 0 < flat < ahead < 1


def test_so_does_one_that_holds_most_of_the_words() -> None:
    few, most = answerable([FLAT], [0.1]), answerable([FLAT], [0.1, 0.9])
    assert few is not None and most is not None and few < most


def test_what_one_model_found_is_not_lost_by_another() -> None:
    assert answerable([FLAT, AHEAD], [0.3]) == answerable([AHEAD], [0.3])


@pytest.mark.parametrize("cosines", [[], [0.9, 0.8], [0.5] * 10])
def test_too_little_is_no_number(cosines: list[float]) -> None:
    assert answerable([cosines], [0.9]) is None


def test_evidence_has_no_unit_of_the_model() -> None:
    assert evidence(AHEAD, [0.2]) == pytest.approx(evidence([10 * c - 3 for c in AHEAD], [0.2]))


def test_the_model_says_what_it_was_fitted_on() -> None:
    assert "tuning half" in fitted()["fitted"]
    even = {name: mean for name, (mean, _, _) in fitted()["numbers"].items()}
    assert 0 < probability(even, fitted()) < 1
