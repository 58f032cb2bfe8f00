"""What OpenDocument keeps in objects beside the content: charts as tables, formulas as a line,
documents as files of their own."""

import io
import re
import zipfile
from typing import Any

from kernel.media import ODP, ODS, ODT
from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.charts import MOST_POINTS, MOST_SERIES
from services.converter.parsing.embedded import unwrapped
from services.converter.parsing.literal import paragraph
from services.converter.parsing.result import File
from services.converter.parsing.table_text import table_row, table_rule
from services.converter.parsing.wordml import parse_xml

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:"
_CHART, _TABLE, _TEXT = (f"{_SPACE}{name}:1.0}}" for name in ("chart", "table", "text"))
_HREF = "{http://www.w3.org/1999/xlink}href"
_OFFICE = f"{_SPACE}office:1.0}}"
_KINDS = {"text": ODT, "spreadsheet": ODS, "presentation": ODP}
_ENDINGS = {ODT: ".odt", ODS: ".ods", ODP: ".odp"}
_FOREIGN = re.compile(r"Object[^/.]*")
_PART = re.compile(r"((?:[^/]+/)*Object[^/]*)/content\.xml")
_MATH = re.compile(rb"<(?:[\w.-]{1,64}:)?math[\s>]")
_MOST = 500
_HEAD = 4096


class Objects:
    """The objects of one document by the address that its frames have for them."""

    def __init__(self, archive: Archive | None = None) -> None:
        self._charts: dict[str, list[str]] = {}
        self._formulas: dict[str, str] = {}
        self.files: list[File] = []
        """Documents within this one, and files of other programs."""
        names = archive.names if archive is not None else []
        found = [match for match in map(_PART.fullmatch, dict.fromkeys(names)) if match]
        for match in found[:_MOST]:
            if archive is not None:
                self._read(archive, match[0], match[1])
        foreign = [name for name in dict.fromkeys(names) if _FOREIGN.fullmatch(name)]
        for name in foreign[:_MOST]:
            if archive is not None:
                self._unwrap(archive, name)

    def _read(self, archive: Archive, name: str, folder: str) -> None:
        try:
            data = archive.read(name)
            if _MATH.search(data[:_HEAD]):
                self._formulas[folder] = _formula(data)
                return
            root = parse_xml(data)
            chart = next(root.iter(_CHART + "chart"), None)
            if chart is None and _kind(root):
                self.files.append(_document(archive, folder, _kind(root)))
        except Damaged:
            archive.miss(name)
            return
        if chart is not None:
            self._charts[folder] = _blocks(chart)

    def _unwrap(self, archive: Archive, name: str) -> None:
        try:
            file = unwrapped(name, archive.read(name))
        except Damaged:
            archive.miss(name)
            return
        self.files += [file] if file else []

    def formula(self, shown: Any) -> str:
        """The formula that a `draw:object` shows; empty if it shows none."""
        return self._formulas.get(_folder(shown.get(_HREF)), "")

    def chart(self, address: str | None) -> list[str]:
        """Markdown of the chart at an address: its title, and what it was drawn from."""
        return self._charts.get(_folder(address), [])


def _kind(root: Any) -> str:
    """Media type of a document that lies in a folder of another one; empty if it is none."""
    body = root.find(_OFFICE + "body")
    names = [str(child.tag).removeprefix(_OFFICE) for child in (() if body is None else body)]
    return next((_KINDS[name] for name in names if name in _KINDS), "")


def _document(archive: Archive, folder: str, kind: str) -> File:
    """The document in a folder as a file; same content, same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr(zipfile.ZipInfo("mimetype"), kind)
        for name in archive.names:
            if name.startswith(f"{folder}/") and not name.endswith("/"):
                entry = zipfile.ZipInfo(name.removeprefix(f"{folder}/"))
                entry.compress_type = zipfile.ZIP_DEFLATED
                whole.writestr(entry, archive.read(name))
    return File(f"{folder.rpartition('/')[2]}{_ENDINGS[kind]}", out.getvalue())


def _folder(address: str | None) -> str:
    return (address or "").removeprefix("./").strip("/")


def _formula(data: bytes) -> str:
    from bs4 import BeautifulSoup

    from services.converter.parsing.formula import linear

    text = re.sub(r"<(/?)[\w.-]{1,64}:", r"<\1", data.decode("utf-8", "replace"))
    math = BeautifulSoup(text, "lxml").find("math")
    return "" if math is None else linear(math)


def _blocks(chart: Any) -> list[str]:
    title = chart.find(_CHART + "title")
    blocks = [paragraph(_text(title))] if title is not None and _text(title) else []
    rows = [
        [_text(cell) for cell in row.iter(_TABLE + "table-cell")][: MOST_SERIES + 1]
        for row in chart.iter(_TABLE + "table-row")
    ][: MOST_POINTS + 1]
    rows = [row for row in rows if any(row)]
    if len(rows) < 2:
        return blocks
    columns = max(map(len, rows))
    lines = [table_row(row + [""] * (columns - len(row))) for row in rows]
    return [*blocks, "\n".join([lines[0], table_rule(columns), *lines[1:]])]


def _text(element: Any) -> str:
    paragraphs = ("".join(p.itertext()) for p in element.iter(_TEXT + "p"))
    return " ".join(" ".join(paragraphs).split())
