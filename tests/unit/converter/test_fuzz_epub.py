"""EPUB, damaged in every way."""

import tempfile
from pathlib import Path

from hypothesis import given

from kernel.media import EPUB
from tests.unit.converter.fuzzing import SLOW, check, damaged_zip
from tests.unit.converter.test_epub import book, page


def _valid() -> bytes:
    pages = {
        "nav": page('<nav><ol><li><a href="one.xhtml">One</a></li></ol></nav>'),
        "one": page("<h1>One</h1><p>text<a id='x'/></p>"),
        "two": page("<p>more</p>"),
    }
    with tempfile.TemporaryDirectory() as folder:
        return book(Path(folder), pages, "nav one two*").read_bytes()


@SLOW
@given(data=damaged_zip(_valid()))
def test_a_damaged_book_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, EPUB)
