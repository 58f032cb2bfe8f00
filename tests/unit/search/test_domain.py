"""Fusion and moments."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from services.search.domain import WORDS, Fused, by_scores, moment_of, rrf

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = st.lists(st.integers(0, 20), max_size=15)


def test_first_place_in_one_list_scores_one_sixty_first() -> None:
    assert rrf(["a"], []) == [Fused("a", 1 / 61, 1, None)]


def test_a_key_of_both_lists_has_both_shares() -> None:
    fused = rrf(["a", "b"], ["b", "c"])
    assert fused[0] == Fused("b", 1 / 62 + 1 / 61, 2, 1)
    assert [f.key for f in fused] == ["b", "a", "c"]


def test_equal_scores_go_by_the_dense_leg() -> None:
    assert [f.key for f in rrf(["d1", "d2"], ["k1", "k2"])] == ["d1", "k1", "d2", "k2"]
    assert [f.key for f in rrf(["a", "b"], ["b", "a"])] == ["a", "b"]


def test_a_key_named_twice_counts_at_its_first_place() -> None:
    assert rrf(["a", "b", "a"], []) == [Fused("a", 1 / 61, 1, None), Fused("b", 1 / 62, 2, None)]


def test_nothing_fuses_to_nothing() -> None:
    assert rrf([], []) == []


def test_another_k_is_used() -> None:
    assert rrf(["a"], [], k=0)[0].score == 1


@given(KEYS, KEYS)
def test_fusion_keeps_every_key_once_and_is_ordered(dense: list[int], keyword: list[int]) -> None:
    fused = rrf(dense, keyword)
    assert sorted(f.key for f in fused) == sorted({*dense, *keyword})
    assert [f.score for f in fused] == sorted((f.score for f in fused), reverse=True)
    assert fused == rrf(dense, keyword)


@given(KEYS, KEYS)
def test_swapping_the_legs_swaps_only_the_ranks(dense: list[int], keyword: list[int]) -> None:
    one = {f.key: (f.score, f.dense_rank, f.keyword_rank) for f in rrf(dense, keyword)}
    other = {f.key: (f.score, f.keyword_rank, f.dense_rank) for f in rrf(keyword, dense)}
    assert one == other


def test_the_first_of_a_leg_that_found_nothing_good_says_little_by_its_scores() -> None:
    cosines, shares = {"near": 0.9, "b": 0.86, "last": 0.85}, {"far": 0.2, "last": 0.1}
    fused = rrf(list(cosines), list(shares))
    assert [f.key for f in fused][:2] == ["last", "near"]
    assert [f.key for f in by_scores(fused, [cosines], shares)] == ["near", "b", "far", "last"]


def test_a_passage_with_every_word_comes_before_the_nearest() -> None:
    fused = rrf(["near", "b"], ["exact"])
    found = by_scores(fused, [{"near": 0.9, "b": 0.8}], {"exact": 1.0})
    assert [(f.key, f.blend) for f in found] == [
        ("exact", WORDS / (1 + WORDS)), ("near", 1 / (1 + WORDS)), ("b", 0.0),
    ]  # fmt: skip


def test_the_nearest_of_each_model_is_as_near() -> None:
    fused = rrf(["a", "b"], [], others=[["c", "d"]])
    found = by_scores(fused, [{"a": 0.9, "b": 0.8}, {"c": 0.3, "d": 0.2}], {})
    assert [f.key for f in found] == ["a", "c", "b", "d"]


def test_a_deeper_look_changes_no_score() -> None:
    cosines = {n: 0.9 - n / 1000 for n in range(50)}
    deeper = cosines | {n: 0.9 - n / 1000 for n in range(50, 200)}
    shown = by_scores(rrf(list(cosines), []), [cosines], {})
    assert by_scores(rrf(list(deeper), []), [deeper], {})[:49] == shown[:49]


def test_scores_do_without_a_leg() -> None:
    assert by_scores(rrf([], []), [], {}) == []
    assert [f.key for f in by_scores(rrf(["a"], []), [{"a": 0.8}], {})] == ["a"]
    assert [f.key for f in by_scores(rrf([], ["a", "b"]), [{}], {"a": 0.1, "b": 0.2})] == ["b", "a"]


@given(KEYS, KEYS)
def test_scores_order_the_same_candidates(dense: list[int], keyword: list[int]) -> None:
    fused = rrf(dense, keyword)
    found = by_scores(fused, [{k: k / 20 for k in dense}], {k: 1 - k / 20 for k in keyword})
    assert sorted(f.key for f in found) == sorted(f.key for f in fused)
    assert all(f.blend is not None and 0 <= f.blend <= 1 for f in found)


def test_moments() -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert moment_of(None, include_historical=False, now=NOW) == NOW
    assert moment_of(past, include_historical=False, now=NOW) == past
    assert moment_of(None, include_historical=True, now=NOW) is None
    assert moment_of(past, include_historical=True, now=NOW) is None


def test_the_first_of_each_model_is_a_first() -> None:
    fused = rrf(["a", "b"], ["c"], others=[["c", "d"]])
    assert [(f.key, f.dense_rank, f.keyword_rank) for f in fused] == [
        ("c", 1, 1), ("a", 1, None), ("b", 2, None), ("d", 2, None),
    ]  # fmt: skip
