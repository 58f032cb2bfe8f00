"""What OpenDocument keeps in objects beside the content: charts as tables, formulas as a line."""

import re
from typing import Any

from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.charts import MOST_POINTS, MOST_SERIES
from services.converter.parsing.literal import paragraph
from services.converter.parsing.table_text import table_row, table_rule
from services.converter.parsing.wordml import parse_xml

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:"
_CHART, _TABLE, _TEXT = (f"{_SPACE}{name}:1.0}}" for name in ("chart", "table", "text"))
_HREF = "{http://www.w3.org/1999/xlink}href"
_PART = re.compile(r"((?:[^/]+/)*Object[^/]*)/content\.xml")
_MATH = re.compile(rb"<(?:[\w.-]{1,64}:)?math[\s>]")
_MOST = 500
_HEAD = 4096


class Objects:
    """The objects of one document by the address that its frames have for them."""

    def __init__(self, archive: Archive | None = None) -> None:
        self._charts: dict[str, list[str]] = {}
        self._formulas: dict[str, str] = {}
        names = archive.names if archive is not None else []
        found = [match for match in map(_PART.fullmatch, dict.fromkeys(names)) if match]
        for match in found[:_MOST]:
            if archive is not None:
                self._read(archive, match[0], match[1])

    def _read(self, archive: Archive, name: str, folder: str) -> None:
        try:
            data = archive.read(name)
            if _MATH.search(data[:_HEAD]):
                self._formulas[folder] = _formula(data)
                return
            chart = next(parse_xml(data).iter(_CHART + "chart"), None)
        except Damaged:
            archive.miss(name)
            return
        if chart is not None:
            self._charts[folder] = _blocks(chart)

    def formula(self, shown: Any) -> str:
        """The formula that a `draw:object` shows; empty if it shows none."""
        return self._formulas.get(_folder(shown.get(_HREF)), "")

    def chart(self, address: str | None) -> list[str]:
        """Markdown of the chart at an address: its title, and what it was drawn from."""
        return self._charts.get(_folder(address), [])


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
