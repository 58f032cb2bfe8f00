"""CSV and its kin: one Markdown table, read and written row by row."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from contracts.artifacts import BodyMeta, ParsedDocument, Place
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import CSV
from services.converter.parsing.encoding import encoding_of
from services.converter.parsing.literal import cell, is_plain
from services.converter.parsing.looks import Runs, literal
from services.converter.parsing.result import Parse
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_CHARACTERS = 65536
_SAMPLE_ROWS = 200
_LONGEST_CELL = 1 << 20
_MOST_COLUMNS = 16_384
_FEW_ROWS = 5000
_GROUP = 100
_SEPARATOR = re.compile(r"\Asep=(.)\r?\n")
_NUMBER = re.compile(r"[-+]?[$€£]?\s?\d[\d.,'\s]*(?:[eE][-+]?\d+)?\s?[%€$]?")
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[T ][\d:.+Z-]+)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2})?"
)
_YEAR = re.compile(r"(?:1[89]|20|21)\d{2}")


class _Format(NamedTuple):
    """How the file is written; `skip` lines lead it and hold no row."""

    encoding: str
    delimiter: str
    quoting: bool
    skip: int = 0


class _Shape(NamedTuple):
    """What the first reading of all rows found."""

    rows: int
    columns: int
    first: list[list[str]]


def parse_csv(path: Path, options: ParseOptions) -> Parse:
    """A table of text as a Markdown table; the first row is its head, if it looks like one.

    The file is read twice, and held never: once for its shape, once to write it. Rows of fewer
    cells stay short, which Markdown allows; blank rows are left out. Each row has its lines as
    its place, in files of more than 5,000 rows every 100 rows together.

    Raises:
        Refusal: `invalid-encoding`, `empty-document`, `too-large`.
    """
    form, shape, warnings = _examined(path)
    if not shape.rows:
        raise Refusal("empty-document", "the table has no text")
    writer = Writer(options.max_output_bytes)
    _write(path, form, shape, writer)
    markdown, spans = writer.finish()
    meta = BodyMeta(title="", language=UNKNOWN, media_type=CSV)
    return Parse(ParsedDocument(markdown=markdown, meta=meta, spans=spans), warnings)


def _examined(path: Path) -> tuple[_Format, _Shape, list[str]]:
    encoding = encoding_of(path)
    warnings = [] if encoding.startswith("utf-8") else [f"decoded as {encoding}"]
    form = _sniffed(path, encoding)
    try:
        shape = _shape(path, form)
    except csv.Error:
        # A quotation mark that nothing closes swallows the rest of the file.
        form = form._replace(quoting=False)
        warnings.append("quotation marks do not match: taken as text")
        shape = _shape(path, form)
    except UnicodeDecodeError as error:
        raise Refusal("invalid-encoding", f"not valid {encoding}") from error
    return form, shape, warnings


# --- reading ------------------------------------------------------------------------------------


def _lines(path: Path, form: _Format) -> Iterator[str]:
    """Lines with their ends, NUL bytes taken out; lines without end come in pieces."""
    with path.open(encoding=form.encoding, newline="") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_CELL), "")):
            if number >= form.skip:
                yield line.replace("\0", "") if "\0" in line else line


def _rows(path: Path, form: _Format) -> Iterator[tuple[int, int, list[str]]]:
    """First and last line of each row that is not blank, and its cells."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(
        _lines(path, form),
        delimiter=form.delimiter,
        quoting=csv.QUOTE_MINIMAL if form.quoting else csv.QUOTE_NONE,
        skipinitialspace=True,
    )
    before = form.skip
    for row in reader:
        last = reader.line_num + form.skip
        if any(row) and not (len(row) == 1 and row[0].isspace()):
            yield before + 1, last, row if len(row) <= _MOST_COLUMNS else _folded(row)
        before = last


def _folded(row: list[str]) -> list[str]:
    return [*row[: _MOST_COLUMNS - 1], " ".join(row[_MOST_COLUMNS - 1 :])]


def _shape(path: Path, form: _Format) -> _Shape:
    rows = columns = 0
    first: list[list[str]] = []
    for _, _, row in _rows(path, form):
        rows += 1
        columns = max(columns, len(row))
        if rows <= _SAMPLE_ROWS:
            first.append(row)
    return _Shape(rows, columns, first)


def _sniffed(path: Path, encoding: str) -> _Format:
    """The delimiter that cuts most rows into the same number of cells, more than one."""
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        sample = file.read(_SAMPLE_CHARACTERS).replace("\0", "")
    told = _SEPARATOR.match(sample)
    if told:
        return _Format(encoding, told[1], quoting=True, skip=1)
    if len(sample) == _SAMPLE_CHARACTERS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    best = max(_DELIMITERS, key=lambda delimiter: _regularity(sample, delimiter))
    return _Format(encoding, best if _regularity(sample, best) > (0, 0) else ",", quoting=True)


def _regularity(sample: str, delimiter: str) -> tuple[float, float]:
    """Share of the rows with the commonest number of cells, and that number; 0 if it is one."""
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(sample.splitlines(keepends=True), delimiter=delimiter, skipinitialspace=True)
    try:
        counts = Counter(len(row) for row in rows if row)
    except csv.Error:
        return (0, 0)
    if not counts:
        return (0, 0)
    width, times = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
    if width == 1:
        # Perhaps most rows are notes around a table.
        cut = sum(n for cells, n in counts.items() if cells > 1)
        return (0.3 * cut / counts.total(), float(cut > 0))
    return (round(times / counts.total(), 1), float(width))


# --- head ---------------------------------------------------------------------------------------


def has_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of `rows` names the columns.

    It does not when it holds a number or date over a column of such: years in a rising row are
    names, though. A table of nothing but words is taken to have a head.
    """
    if len(rows) < 2:
        return False
    head = [text.strip() for text in rows[0]]
    years = [text for text in head if _YEAR.fullmatch(text)]
    if len(years) > 1 and years == sorted(set(years)) and not (head[0] and head[0] in years):
        return True
    return not any(
        is_value(text) and _values_below(rows, column) for column, text in enumerate(head)
    )


def is_value(text: str) -> bool:
    """A number, a date or a time."""
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))


def _values_below(rows: Sequence[Sequence[str]], column: int) -> bool:
    below = [row[column].strip() for row in rows[1:] if column < len(row) and row[column].strip()]
    return bool(below) and 2 * sum(map(is_value, below)) > len(below)


# --- writing ------------------------------------------------------------------------------------


def _write(path: Path, form: _Format, shape: _Shape, writer: Writer) -> None:
    group = 1 if shape.rows <= _FEW_ROWS else _GROUP
    rows = _rows(path, form)
    if has_head(shape.first):
        start, end, head = next(rows)
        writer.add(table_row(head + [""] * (shape.columns - len(head))), Place(lines=(start, end)))
    else:
        writer.add(table_row([""] * shape.columns))
    writer.add("\n" + table_rule(shape.columns))
    lines: list[str] = []
    first = last = 0
    for start, end, row in rows:
        first, last = first if lines else start, end
        lines.append(table_row(row))
        if len(lines) == group:
            _write_group(writer, lines, first, last)
            lines = []
    if lines:
        _write_group(writer, lines, first, last)


def _write_group(writer: Writer, lines: list[str], first: int, last: int) -> None:
    writer.add("\n")
    writer.add("\n".join(lines), Place(lines=(first, last)))


def table_row(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    # Most rows need no care, and to look at a million of them cell by cell takes its time.
    if not is_plain("".join(cells)):
        cells = [cell(text) for text in cells]
    return f"| {' | '.join(cells)} |"


def styled_row(cells: Sequence[Runs]) -> str:
    """A row of a Markdown table, with stars; not for its head."""
    return f"| {' | '.join(literal(runs, cell) for runs in cells)} |"


def table_rule(columns: int) -> str:
    """The line under the head."""
    return "| " + " | ".join(["-"] * columns) + " |"
