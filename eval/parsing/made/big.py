"""Files as large as the limits allow, written row by row."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from eval.parsing.made import office, pdf
from eval.parsing.made.model import report
from eval.parsing.made.texts import WORDS
from eval.parsing.made.web import html

_PAGES_OF_A_REPORT = 2
_TABLE_BYTES = 200_000_000
_LOG_BYTES = 170_000_000
_HTML_BYTES = 10_000_000
_CELLS = {"latin": "plain words of a cell", "cyrillic": "обычные слова одной ячейки"}


def write_big(folder: Path, wanted: frozenset[str] = frozenset()) -> list[Path]:
    """PDFs of 1,000 and 3,000 pages, CSVs of 200 MB, a workbook of a million rows, JSON, a log, a
    page of 10 MB; `wanted`: only files of these names."""
    makers: dict[str, Callable[[Path], None]] = {
        "pages-1000.pdf": lambda path: _pages(path, 1000),
        "pages-3000.pdf": lambda path: _pages(path, 3000),
        "rows.csv": lambda path: _csv(path, _CELLS["latin"]),
        "cyrillic.csv": lambda path: _csv(path, _CELLS["cyrillic"]),
        # One character beyond the first plane, and Python takes four bytes for each of the text.
        "emoji.csv": lambda path: _csv(path, _CELLS["latin"], end="1,🙂,2024-01-15,1\n"),
        "rows.xlsx": lambda path: office.write_rows(path, 1_000_000),
        "rows.json": lambda path: _write(path, _json(), _TABLE_BYTES),
        "rows.jsonl": lambda path: _write(path, map(_record, _numbers()), _TABLE_BYTES),
        "server.log": lambda path: _write(path, map(_logged, _numbers()), _LOG_BYTES),
        "page.html": _page,
    }
    paths = []
    for name, make in makers.items():
        path = folder / name
        if not wanted or name in wanted:
            make(path)
            paths.append(path)
    return paths


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _write(path: Path, lines: Iterable[str], most: int, end: str = "") -> None:
    """Lines up to `most` bytes, then `end`."""
    size = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in lines:
            size += len(line.encode())
            if size > most:
                break
            file.write(line)
        file.write(end)


def _pages(path: Path, pages: int) -> None:
    document = report(WORDS[0])
    blocks = document.blocks * (pages // _PAGES_OF_A_REPORT)
    pdf.write_pdf(replace(document, name="pages", blocks=blocks, footnote=""), path)


def _csv(path: Path, text: str, end: str = "") -> None:
    def lines() -> Iterator[str]:
        yield "number,text,day,price\n"
        for n in _numbers():
            yield f"{n},{text},2024-01-{n % 28 + 1:02},{n % 900}.25\n"

    _write(path, lines(), _TABLE_BYTES, end)


def _record(number: int) -> str:
    record = {"number": number, "text": _CELLS["latin"], "day": f"2024-01-{number % 28 + 1:02}"}
    return json.dumps(record) + "\n"


def _json() -> Iterator[str]:
    """An object with one long list, nearly as large as it may be."""
    records = _TABLE_BYTES // (len(_record(10_000_000)) + 1) - 1
    yield '{"rows": [\n'
    for n in range(records):
        yield _record(n).rstrip("\n") + (",\n" if n < records - 1 else "\n")
    yield "]}\n"


def _logged(number: int) -> str:
    seconds = number % 86_400
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"2024-01-15 {clock} INFO  request {number} of the reading room took {number % 997} ms\n"


def _page(path: Path) -> None:
    document = report(WORDS[0])
    times = _HTML_BYTES // len(html(document, "utf-8")) + 1
    blocks = document.blocks * times
    path.write_text(html(replace(document, blocks=blocks), "utf-8"), "utf-8")
