"""Which pieces of the language check can be told at all, by signs that look at no answer."""

from collections import Counter
from collections.abc import Callable

import pytest

from eval import language_ceiling
from eval.language_ceiling import Signs, counted, shared, sort

LISTS = Signs(
    english=frozenset({"press", "button", "window"}),
    slavic=frozenset({"vlak", "voz", "kuća", "rijeka", "reka", "nova"}),
    alone={"hr": frozenset({"vlak", "tjedan"}), "sr": frozenset({"voz", "sedmica"})},
    used={"hr": frozenset({"vlak"}), "sr": frozenset({"voz"})},
    yat={"hr": frozenset({"rijeka"}), "sr": frozenset({"reka"})},
)


@pytest.mark.parametrize(
    ("piece", "code", "expected"),
    [
        ("Press the button. Nova kuća, taj voz.", "sr", "decidable"),
        ("Press the button in the window. Nova kuća.", "sr", "english"),
        ("Ovaj voz ide kući.", "hr", "other side"),
        ("Ovaj vlak ide kući.", "sr", "other side"),
        ("Ova sedmica, taj vlak.", "sr", "decidable"),
        ("Velika rijeka je tu.", "sr", "other yat"),
        ("Velika reka je tu.", "hr", "other yat"),
        ("Velika rijeka je tu.", "hr", "decidable"),
        ("Nova kuća je tu.", "hr", "no sign"),
        ("Taj tjedan.", "hr", "decidable"),
        ("", "hr", "no sign"),
    ],
)
def test_a_piece_is_sorted_by_the_lists(piece: str, code: str, expected: str) -> None:
    assert sort(piece, code, LISTS, set()) == expected


def test_what_a_set_has_under_the_other_label_word_for_word_is_set_apart() -> None:
    same = "Koji od navedenih pojmova pripada ovdje"
    variants = {
        "hr": [f"{same}?"],
        "sr-Latn*": [f"Voz ide. {same}, a koji ne?"],
        "sr-Cyrl": ["ово"],
    }
    elsewhere = shared(variants, "sr-Latn*")
    assert sort(f"{same} voz", "sr", LISTS, elsewhere) == "elsewhere"
    assert sort(f"{same} voz reka kuća i još sedam drugih riječi", "sr", LISTS, elsewhere) != (
        "elsewhere"
    )
    assert shared(variants, "hr") >= elsewhere


def _always(answer: str) -> Callable[[str], str]:
    return lambda _: answer


def test_the_sort_takes_no_notice_of_the_answer() -> None:
    texts = {
        "set": {"hr": ["Ovaj vlak ide kući svaki dan u isto vrijeme, kaže vozač."], "de": ["x"]}
    }
    found = {}
    for answer in ("hr", "sr"):
        found[answer], wrong = counted(texts, 40, 1, LISTS, _always(answer))
        assert bool(wrong) == (answer == "sr")
    kinds = [Counter(k for k, _ in c["hr", "set"].elements()) for c in found.values()]
    assert kinds[0] == kinds[1]
    assert set(found["hr"]) == {("hr", "set")}


def test_the_table_has_a_row_for_each_set_and_one_for_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = {
        ("hr", "a"): Counter({("decidable", True): 3, ("english", False): 1}),
        ("hr", "b"): Counter({("decidable", False): 1}),
    }
    language_ceiling.report(found, 60)
    lines = capsys.readouterr().out.splitlines()
    assert "| hr | all | 0.600 of 5 | 0.000 of 1 | – | – | – | – | 0.750 of 4 |" in lines
    assert "| hr | b | 0.000 of 1 | – | – | – | – | – | 0.000 of 1 |" in lines
