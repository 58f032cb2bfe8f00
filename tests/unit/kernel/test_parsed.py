"""A parse is read from its file: the same document, held about once."""

import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place, Span
from kernel import parsed
from kernel.media import PLAIN
from kernel.parsed import load

META = BodyMeta(title="T", language="de", media_type=PLAIN)


def stored(folder: Path, text: str) -> tuple[Path, ParsedDocument]:
    document = ParsedDocument(
        markdown=text, meta=META, hidden=(HiddenText(kind="comment", text='"h\\'),),
        spans=(Span(byte_start=0, byte_end=1, place=Place(page=1)),),
    )  # fmt: skip
    path = folder / "parsed"
    path.write_bytes(document.to_bytes())
    return path, document


@given(st.text(max_size=60), st.integers(1, 9))
def test_what_was_stored_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, text: str, piece: int
) -> None:
    path, document = stored(tmp_path_factory.mktemp("parsed"), text)
    with pytest.MonkeyPatch.context() as patch:
        # Escapes and characters are cut in every way.
        patch.setattr(parsed, "_PIECE", piece)
        loaded = load(path)
    assert loaded.document == document
    assert loaded.sha256 == sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("text", ["", '"', "\\", "a\\", "\\u0041", "\x01\n\t🙂Ж", "\\" * 99])
@pytest.mark.parametrize("piece", [1, 2, 3, 5])
def test_signs_of_json_in_a_text_are_text(
    tmp_path: Path, text: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed, "_PIECE", piece)
    path, document = stored(tmp_path, text)
    assert load(path).document == document


def test_other_json_of_a_document_is_loaded_too(tmp_path: Path) -> None:
    path, document = stored(tmp_path, "text")
    path.write_text(document.model_dump_json(indent=1), "utf-8")
    assert load(path).document == document


@pytest.mark.parametrize("cut", [0, 5, 13, 15, 30, -1])
def test_half_a_document_is_none(tmp_path: Path, cut: int) -> None:
    path, document = stored(tmp_path, 'some "text" \\ with an end')
    path.write_bytes(document.to_bytes()[:cut])
    with pytest.raises(ValueError):
        load(path)


def test_a_large_document_is_held_twice_at_most(tmp_path: Path) -> None:
    path, document = stored(tmp_path, "| a | b |\n" * 3_000_000)
    size = len(document.markdown)
    del document
    tracemalloc.start()
    try:
        assert len(load(path).document.markdown) == size
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.4 * size + 8 * parsed._PIECE
