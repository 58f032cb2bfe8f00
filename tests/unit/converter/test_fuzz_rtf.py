"""RTF, damaged in every way."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernel.media import RTF
from tests.unit.converter.fuzzing import BOUNDED, check, damaged

VALID = (
    rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 A;}}{\colortbl;\red255\green255\blue255;}"
    rb"{\stylesheet{\s1 heading 1;}}\s1\f0 \'cf\'f0 \u1090?\par{\listtext 1.\tab}\ilvl1 x\par"
    rb"\trowd\cellx1\clmrg\cellx2\intbl a\cell b\cell\row\pard t{\footnote n}{\v h}\bin2 {}\par}"
)


@BOUNDED
@given(data=damaged(VALID))
def test_damaged_rich_text_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, RTF)


@BOUNDED
@given(words=st.lists(st.sampled_from(VALID.split(b"\\")), max_size=40))
def test_any_words_are_read_or_refused(tmp_path: Path, words: list[bytes]) -> None:
    check(tmp_path / "a", b"{\\rtf1" + b"\\".join([b"", *words]), RTF)
