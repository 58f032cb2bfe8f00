"""Plain text and Markdown of any bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.media import MARKDOWN, PLAIN
from tests.unit.converter.fuzzing import BOUNDED, check, damaged

VALID = (
    "---\ntitle: x\n---\n# Naslov\n\n<!-- a\nb -->text `<!-- c -->`\n\n```\ncode\n```\n"
    "[//]: # (d)\n<div hidden>e</div>\n\nзавршетак\n"
).encode()


@pytest.mark.parametrize("media_type", [MARKDOWN, PLAIN])
@BOUNDED
@given(data=damaged(VALID))
def test_damaged_text_is_read_or_refused(tmp_path: Path, media_type: str, data: bytes) -> None:
    check(tmp_path / "a", data, media_type)


@pytest.mark.parametrize("media_type", [MARKDOWN, PLAIN])
@BOUNDED
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(tmp_path: Path, media_type: str, data: bytes) -> None:
    check(tmp_path / "a", data, media_type)
