"""Names of parsers, and settings that stop the start."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from kernel.media import DOCX, HTML, MARKDOWN, PDF, PLAIN, PNG
from services.converter import parsers
from services.converter.settings import ConverterSettings, ParseOptions


@pytest.fixture
def no_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "tesseract_version", lambda: "")


def test_the_name_says_engine_and_version() -> None:
    options = ParseOptions()
    assert parsers.parser_for(MARKDOWN, options).startswith("markdown-")
    assert parsers.parser_for(PLAIN, options).startswith("text-")
    assert parsers.parser_for(HTML, options).startswith("docling-2.")
    assert parsers.parser_for(DOCX, options) != parsers.parser_for(HTML, options)
    assert parsers.parser_for("application/zip", options) == "none"


def test_ocr_is_part_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "tesseract_version", lambda: "5.3.0")
    monkeypatch.setattr(parsers, "tesseract_languages", lambda: 9)
    for media_type in (PDF, PNG):
        name = parsers.parser_for(media_type, ParseOptions())
        assert "+tesseract-5.3.0-9langs+rapidocr-3." in name
        without = parsers.parser_for(media_type, ParseOptions(ocr=False))
        assert "tesseract" not in without
        assert "rapidocr" not in without


@pytest.mark.usefixtures("no_tesseract")
def test_models_are_part_of_the_name(tmp_path: Path) -> None:
    heuristic = parsers.parser_for(PDF, ParseOptions())
    assert "+heuristic-" in heuristic
    assert "+heron-" in parsers.parser_for(PDF, ParseOptions(artifacts=tmp_path))
    assert "tesseract" not in heuristic


def test_a_folder_without_models_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_DOCLING_ARTIFACTS", str(tmp_path))
    with pytest.raises(ValidationError, match="no layout model"):
        ConverterSettings()
    (tmp_path / "docling-project--docling-layout-heron").mkdir()
    assert ConverterSettings().parse_options.artifacts == tmp_path


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_CONVERTER_MEMORY_MIB", "1024")
    monkeypatch.setenv("KB_CONVERTER_ACCEPTED", '["de", "en"]')
    settings = ConverterSettings()
    assert settings.limits.memory_bytes == 1024**3
    assert settings.accepted == {"de", "en"}


@pytest.mark.parametrize("told", ["de,en", "de, en", '["de", "en"]'])
def test_languages_are_told_as_a_list(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv("KB_CONVERTER_ACCEPTED", told)
    assert ConverterSettings().accepted == {"de", "en"}
