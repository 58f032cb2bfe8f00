"""What class a text is of: nearness, keywords, certainty."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from contracts.artifacts import SectionSummary, Sentence, Summary
from contracts.events import UNCATEGORIZED, Classified, TaxonomyClass, TaxonomySet
from contracts.taxonomy import ClassBody, TaxonomyChange
from kernel.testing import received
from services.indexer.taxonomy import HEADINGS, described, judge, keyword_hits, told

NAMES = ("law", "law/criminal", "cooking")


def taxonomy(*keywords: tuple[str, ...], threshold: float = 0.5) -> TaxonomySet:
    given = dict(zip(NAMES, keywords, strict=False))
    classes = tuple(TaxonomyClass(name=n, keywords=given.get(n, ())) for n in NAMES)
    return TaxonomySet(
        project="p", taxonomy="0" * 64, classes=classes, threshold=threshold, actor="a"
    )


def unit(*numbers: float) -> Any:
    vector = np.asarray(numbers, np.float32)
    return vector / np.linalg.norm(vector)


CLASSES = np.stack([unit(1, 0, 0, 0.9), unit(0, 1, 0, 0.9), unit(0, 0, 1, 0.9)])
BACKGROUND = np.stack([unit(0.1, 0.1, 0.1, 1), unit(-0.1, -0.1, -0.1, 1)])
NONE = [0, 0, 0]


def test_the_nearest_class_is_the_main_one() -> None:
    judged = judge(unit(0, 1, 0, 0.9), CLASSES, BACKGROUND, NONE, taxonomy())
    assert (judged.main, judged.tags) == ("law/criminal", ())
    assert judged.confidence > 0.99


def test_between_two_classes_nothing_is_certain_and_both_are_tags() -> None:
    judged = judge(unit(1, 0, 1, 0.9), CLASSES, BACKGROUND, NONE, taxonomy(threshold=0.6))
    assert (judged.main, judged.tags) == (UNCATEGORIZED, ("law", "cooking"))
    assert judged.confidence == pytest.approx(0.5, abs=0.01)


def test_what_is_nothing_of_it_all_is_in_no_class() -> None:
    judged = judge(unit(0, 0, 0, 1), CLASSES, BACKGROUND, NONE, taxonomy())
    assert judged.main == UNCATEGORIZED
    assert judged.confidence < 0.5


def test_a_keyword_decides_between_two() -> None:
    judged = judge(unit(1, 0, 1, 0.9), CLASSES, BACKGROUND, [0, 0, 1], taxonomy())
    assert judged.main == "cooking"
    assert judged.confidence > 0.8


def test_one_class_alone_may_still_refuse() -> None:
    one = taxonomy().model_copy(update={"classes": (TaxonomyClass(name="law"),)})
    assert judge(unit(1, 0, 0, 0.9), CLASSES[:1], BACKGROUND, [0], one).main == "law"
    assert judge(unit(0, 1, 0, 0.9), CLASSES[:1], BACKGROUND, [0], one).main == UNCATEGORIZED


@pytest.mark.parametrize(
    ("keyword", "text", "language"),
    [
        ("Geldstrafe", "Die Geldstrafen betragen zehn Tagessätze.", "de"),
        ("кривично дело", "Ko učini krivično delo, kazniće se.", "sr"),
        ("штраф", "Размер штрафа определяется судом.", "ru"),
        ("§ 5", "Nach § 5 gilt das nicht.", "de"),
    ],
)
def test_a_keyword_stands_in_any_form_and_script(keyword: str, text: str, language: str) -> None:
    assert keyword_hits(text, language, taxonomy((keyword,))) == [1, 0, 0]


def test_a_keyword_of_two_words_needs_both() -> None:
    assert keyword_hits("A criminal case.", "en", taxonomy(("criminal act",), ())) == [0, 0, 0]


def summary(*headings: str, outline: bool = True) -> Summary:
    sentence = Sentence(text="The digest.", byte_start=0, byte_end=1)
    sections = tuple(
        SectionSummary(heading_path=(h,), depth=1, byte_start=0, byte_end=1, digest=(sentence,))
        for h in headings
    )
    return Summary(
        body_sha256="0" * 64, summariser="s", language="en", outline=outline,
        lead=Sentence(text="The lead.", byte_start=0, byte_end=1), sections=sections,
    )  # fmt: skip


def test_what_is_compared_is_title_lead_and_outline() -> None:
    assert told("Title", summary("Title", "A", "B")) == "Title\nThe lead.\nA\nB"
    assert told("Title", summary("", outline=False)) == "Title\nThe lead.\nThe digest."
    assert len(told("T", summary(*map(str, range(500)))).splitlines()) == HEADINGS + 2


def test_what_is_embedded_of_a_class() -> None:
    one = TaxonomyClass(name="law/criminal", description="Crimes.", keywords=("theft", "fraud"))
    assert described(one) == "law, criminal: Crimes. theft, fraud"
    assert described(TaxonomyClass(name="law")) == "law"


def test_labels_are_the_class_those_above_it_and_the_tags() -> None:
    event = Classified(
        **received("a").ids, body_sha256="0" * 64, taxonomy="0" * 64, main="law/criminal/theft",
        tags=("cooking",), confidence=0.9, classifier="c", embedder="e",
    )  # fmt: skip
    assert event.labels == [
        "class:law", "class:law/criminal", "class:law/criminal/theft", "tag:cooking",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [{"name": "a"}, {"name": "A"}],
        [{"name": "uncategorized"}],
        [{"name": "a//b"}],
        [{"name": "/a"}],
        [{"name": "a\nb"}],
        [{"name": ""}],
        [{"name": "x" * 101}],
        [{"name": "a", "keywords": ["x" * 61]}],
        [{"name": "a", "colour": "red"}],
        [{"name": f"c{n}", "description": "x" * 500, "keywords": []} for n in range(501)],
    ],
)
def test_a_taxonomy_that_cannot_be(classes: list[Any]) -> None:
    with pytest.raises(ValidationError):
        TaxonomyChange.model_validate({"classes": classes})


def test_names_are_in_small_letters() -> None:
    assert ClassBody(name="Право/Кривично").name == "право/кривично"
