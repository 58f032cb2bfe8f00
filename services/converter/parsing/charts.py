"""Charts of office documents as tables: a row for each category, a column for each series."""

from collections.abc import Callable, Iterator
from typing import Any

from services.converter.parsing.cells import number_of, number_text, shower
from services.converter.parsing.literal import paragraph
from services.converter.parsing.slide_text import text_of
from services.converter.parsing.table_text import table_row, table_rule

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
MOST_POINTS = 1000
MOST_SERIES = 50


def chart_blocks(root: Any) -> list[str]:
    """Markdown of a chart part: its title, if it has one, and the values that it was drawn from."""
    blocks: list[str] = []
    title = root.find(f"{_C}chart/{_C}title")
    text = text_of(title) if title is not None else ""
    blocks += [paragraph(text)] if text else []
    series = list(root.iter(_C + "ser"))[:MOST_SERIES]
    columns = [_points(one, "val", "yVal", "bubbleSize") for one in series]
    if not any(columns):
        return blocks
    names = next((found for one in series if (found := _points(one, "cat", "xVal"))), {})
    rows = sorted({index for column in [names, *columns] for index in column})[:MOST_POINTS]
    head = ["", *(_name(one) for one in series)]
    lines = [table_row(head), table_rule(len(head))]
    for index in rows:
        lines.append(table_row([names.get(index, ""), *(c.get(index, "") for c in columns)]))
    return [*blocks, "\n".join(lines)]


def _name(series: Any) -> str:
    told = series.find(_C + "tx")
    return "" if told is None else " ".join(v.text or "" for v in told.iter(_C + "v"))


def _points(series: Any, *names: str) -> dict[int, str]:
    """Stored values by index; of several levels of categories the innermost."""
    for name in names:
        found = series.find(_C + name)
        if found is not None:
            return dict(_values(found))
    return {}


def _values(element: Any) -> Iterator[tuple[int, str]]:
    levels = element.findall(f".//{_C}lvl")
    dated = _dates(element)
    for point in (levels[0] if levels else element).iter(_C + "pt"):
        index, value = point.get("idx") or "", point.findtext(_C + "v") or ""
        if index.isdecimal() and len(index) < 7 and value:
            yield int(index), _number(value, dated)


def _dates(element: Any) -> Callable[[float], str] | None:
    """How to write numbers that are days, by the form which the chart gives them."""
    from openpyxl.styles.numbers import is_date_format

    code = next((e.text or "" for e in element.iter(_C + "formatCode")), "")
    if not is_date_format(code[:200]):
        return None
    of_1904 = element.getroottree().getroot().find(_C + "date1904")
    told = of_1904 is not None and (of_1904.get("val") or "1") not in {"0", "false"}
    return shower(code[:200], from_1904=told)


def _number(text: str, dated: Callable[[float], str] | None) -> str:
    try:
        return dated(float(text)) if dated else number_text(number_of(text))
    except (ValueError, OverflowError):
        return text
