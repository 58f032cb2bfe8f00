"""Pages set straight: frames, skew, drawn lines, light on dark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from services.converter.parsing.ocr_engines import Seen
from services.converter.parsing.pdf_glyphs import Box
from services.converter.parsing.upright import (
    Frame,
    dark_on_light,
    densest,
    legible,
    rotated,
    skew_of,
    turned,
    unread,
    without_rules,
)
from tests.unit.converter.drawn import TEXTS, drawn, scanned


@given(
    quarters=st.integers(0, 7),
    width=st.floats(50, 5000),
    height=st.floats(50, 5000),
    scale=st.floats(0.1, 10),
)
def test_a_frame_of_quarter_turns_is_undone(
    quarters: int, width: float, height: float, scale: float
) -> None:
    frame = Frame.of(width, height).turned(quarters).scaled(scale)
    back = frame.back(Box(0, 0, *frame.size))
    assert back == pytest.approx((0, 0, width, height), abs=1e-6 * max(width, height))


@pytest.mark.parametrize("degrees", [-4.0, -0.5, 0.3, 2.5])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_dot_is_found_where_the_frame_says(degrees: float, quarters: int) -> None:
    shown = Image.new("L", (400, 300), 255)
    shown.paste(0, (90, 40, 100, 50))
    straight = rotated(turned(shown, quarters), degrees)
    rows, columns = np.nonzero(np.asarray(straight) < 128)
    frame = Frame.of(400, 300).turned(quarters).rotated(degrees)
    box = frame.back(Box(columns.min(), rows.min(), columns.max() + 1.0, rows.max() + 1.0))
    assert ((box.left + box.right) / 2, (box.top + box.bottom) / 2) == pytest.approx(
        (95, 45), abs=2
    )
    assert straight.size == pytest.approx(frame.size, abs=2)


@pytest.mark.parametrize("angle", [-4.0, -1.0, -0.4, 0.4, 1.0, 4.0])
def test_skew_is_measured(angle: float) -> None:
    page = scanned(drawn(TEXTS["bg"] * 3), angle=angle)
    assert skew_of(page) == pytest.approx(-angle, abs=0.2)


@pytest.mark.parametrize("size", [(1, 1), (20, 3000), (300, 300)])
def test_a_page_without_lines_is_level(size: tuple[int, int]) -> None:
    assert skew_of(Image.new("L", size, 255)) == 0.0


def test_drawn_lines_are_found_and_painted_over() -> None:
    page = drawn(TEXTS["en"] * 2)
    pen = ImageDraw.Draw(page)
    for y in (20, 60, 100):
        pen.line((100, y, 900, y), fill=0, width=3)
    for x in (100, 500, 900):
        pen.line((x, 20, x, 100), fill=0, width=3)
    clean, rules = without_rules(scanned(page, angle=0))
    assert [rule.horizontal for rule in rules] == [True] * 3 + [False] * 3
    assert rules[0].left == pytest.approx(100, abs=8)
    assert np.asarray(clean)[15:25, 300].min() > 150


def test_text_is_no_drawn_line() -> None:
    page = scanned(drawn("——— IIIIIIII ||| " + TEXTS["ru"] * 3, size=16))
    clean, rules = without_rules(page)
    assert rules == []
    assert np.array_equal(np.asarray(clean), np.asarray(page))


def test_light_text_on_dark_is_turned_around() -> None:
    page = drawn(TEXTS["en"])
    dark = Image.fromarray(255 - np.asarray(page))
    assert np.array_equal(np.asarray(dark_on_light(dark)), np.asarray(page))
    assert np.array_equal(np.asarray(dark_on_light(page)), np.asarray(page))


# --- letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "larger"), [(9, True), (12, True), (30, False), (60, False)])
def test_small_letters_are_enlarged(size: int, larger: bool) -> None:
    page = drawn(TEXTS["de"] * 2, size=size)
    assert (legible(page).width > page.width) is larger


@pytest.mark.parametrize("size", [(1, 1), (5000, 9), (300, 300)])
def test_a_page_without_letters_stays_as_it_is(size: tuple[int, int]) -> None:
    page = Image.new("L", size, 255)
    assert legible(page) is page
    assert unread(page, []) == 0.0
    assert densest(page, 900).size == (min(900, size[0]), min(900, size[1]))


def test_an_enlarged_page_is_not_larger_than_a_page_may_be() -> None:
    page = drawn(TEXTS["de"] * 60, size=9, width=3400)
    whole = Image.new("L", (3400, 2300), 255)
    whole.paste(page, (0, 0))
    assert legible(whole).width * legible(whole).height <= 8_100_000


def test_the_part_with_most_ink_is_found() -> None:
    page = Image.new("L", (3000, 2000), 255)
    page.paste(drawn(TEXTS["en"] * 2, width=800), (2100, 1300))
    part = densest(page, 900)
    assert part.size == (900, 900)
    assert (np.asarray(part) < 128).sum() > 0.9 * (np.asarray(page) < 128).sum()


def test_what_no_word_lies_on_is_unread() -> None:
    page = drawn(TEXTS["sl"] * 4)
    whole = Seen("a", 0, 0, page.width, page.height, 20, 0.9)
    assert unread(page, [whole]) == 0.0
    assert unread(page, []) == 1.0
    half = whole._replace(bottom=180 + (page.height - 260) / 2)
    assert unread(page, [half]) == pytest.approx(0.5, abs=0.1)
