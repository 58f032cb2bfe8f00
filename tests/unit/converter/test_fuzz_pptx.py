"""PPTX, damaged in every way."""

from pathlib import Path
from typing import Any

import pptx
from hypothesis import given
from pptx.util import Pt

from kernel.media import PPTX
from tests.unit.converter.fuzzing import SLOW, check, damaged_zip, made


def _valid() -> bytes:
    deck = pptx.Presentation()
    slide: Any = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Title"
    slide.placeholders[1].text = "one\ntwo"
    table: Any = slide.shapes.add_table(2, 2, Pt(0), Pt(0), Pt(99), Pt(9)).table
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(0, 0).text = "cell"
    slide.shapes.add_group_shape().shapes.add_textbox(Pt(1), Pt(1), Pt(9), Pt(9)).text = "x"
    slide.notes_slide.notes_text_frame.text = "note"
    return made(deck.save)


@SLOW
@given(data=damaged_zip(_valid(), r"ppt/(?:slides/.*|presentation\.xml|notesSlides/.*)"))
def test_a_damaged_presentation_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, PPTX)
