"""Containers of Office: kinds, names and forms that libraries do not know."""

import re
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest

from services.converter.parsing.docx import parse_docx
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions


def parse(document: Any, tmp_path: Path) -> Parse:
    document.save(str(tmp_path / "a.docx"))
    return parse_docx(tmp_path / "a.docx", ParseOptions())


@pytest.mark.parametrize(
    "kind",
    [
        "vnd.openxmlformats-officedocument.wordprocessingml.template.main",
        "vnd.ms-word.document.macroEnabled.main",
        "vnd.ms-word.template.macroEnabledTemplate.main",
    ],
)
def test_templates_and_documents_with_macros_are_documents(tmp_path: Path, kind: str) -> None:
    document = docx.Document()
    document.add_heading("Frist", 1)
    document.save(str(tmp_path / "a.docx"))
    with zipfile.ZipFile(tmp_path / "a.docx") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    plain = b"vnd.openxmlformats-officedocument.wordprocessingml.document.main"
    assert plain in parts["[Content_Types].xml"]
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(plain, kind.encode())
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as changed:
        for name, data in parts.items():
            changed.writestr(name, data)
    assert "Frist" in parse_docx(tmp_path / "b.docx", ParseOptions()).document.markdown


def strict(source: Path, target: Path) -> Path:
    """The file with the names of the strict form."""
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(target, "w") as changed:
        for name in whole.namelist():
            data = whole.read(name)
            changed.writestr(
                name,
                re.sub(
                    rb"http://schemas\.openxmlformats\.org/(?!package)(\w+)/2006/",
                    rb"http://purl.oclc.org/ooxml/\1/",
                    data,
                ),
            )
    return target


def test_the_strict_form_is_read(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Frist", 1)
    document.add_table(1, 2).cell(0, 0).text = "c"
    usual = parse(document, tmp_path).document
    found = parse_docx(strict(tmp_path / "a.docx", tmp_path / "b.docx"), ParseOptions())
    assert found.document.markdown == usual.markdown
    assert "Frist" in usual.markdown


def test_a_part_in_other_upper_and_lower_case_is_there(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Frist")
    document.save(str(tmp_path / "a.docx"))
    with zipfile.ZipFile(tmp_path / "a.docx") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    parts["docProps/Thumbnail.jpeg"] = parts.pop("docProps/thumbnail.jpeg")
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as changed:
        for name, data in parts.items():
            changed.writestr(name, data)
    found = parse_docx(tmp_path / "b.docx", ParseOptions())
    assert "Frist" in found.document.markdown
    assert found.warnings == []
