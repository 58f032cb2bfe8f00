"""Made documents as PDF."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reportlab.platypus import Flowable, Paragraph

from eval.parsing.made import model
from eval.parsing.made.model import Centred, Grid, Heading, Items, Made

_FOLDERS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/truetype/liberation")
_FACES = {
    "sans": ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    "serif": ("LiberationSerif-Regular.ttf", "LiberationSerif-Bold.ttf"),
}
_BOOK = (("ABOVE", 0), ("BELOW", 0), ("BELOW", -1))
_SIZES = {1: 19, 2: 14.5, 3: 12}


def write_pdf(
    made: Made, path: Path, *, columns: int = 1, face: str = "sans", hyphens: bool = False
) -> None:
    """A4 pages with running head, page number and the footnote below the first page.

    `hyphens`: as TeX sets text: words cut at line ends, `fi` and `fl` as one letter, no blanks.

    Raises:
        FileNotFoundError: the fonts are not on this machine.
    """
    from reportlab.platypus import BaseDocTemplate

    regular, bold = _fonts(face)
    document = BaseDocTemplate(str(path), pagesize=(595, 842), title=made.title)
    document.addPageTemplates(_templates(made, columns, regular))
    width = (455 - 22 * (columns - 1)) / columns

    def body(text: str) -> Any:
        if hyphens:
            return _Words(_hyphenated(text, font=regular, width=width), regular)
        style = _style("body", regular, 10, spaceAfter=7, alignment=4 if columns > 1 else 0)
        return Paragraph(text, style)

    document.build(list(_flowables(made, columns, (regular, bold), body)))


def _hyphenated(text: str, *, font: str, width: float) -> list[str]:
    """Lines filled to the last letter, by cutting words with three letters or more either side."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    def fits(line: str) -> bool:
        return bool(stringWidth(line, font, 10) <= width)

    lines, line = [], ""
    for word in text.replace("fi", "ﬁ").replace("fl", "ﬂ").split():
        longer = f"{line} {word}".strip()
        if fits(longer):
            line = longer
            continue
        places = [n for n in range(3, len(word) - 3) if word[:n].isalpha() and word[n:].isalpha()]
        cut = max((n for n in places if fits(f"{line} {word[:n]}-")), default=0)
        lines.append(f"{line} {word[:cut]}-" if cut else line)
        line = word[cut:]
    return [*lines, line]


def _templates(made: Made, columns: int, font: str) -> list[Any]:
    from reportlab.platypus import Frame, PageTemplate

    left, right, bottom, top, gap = 70, 525, 90, 770, 22
    width = (right - left - gap * (columns - 1)) / columns

    def frames(height: float) -> list[Any]:
        starts = [left + n * (width + gap) for n in range(columns)]
        return [Frame(x, bottom, width, height - bottom, 0, 0, 0, 0) for x in starts]

    def decorate(canvas: Any, document: Any) -> None:
        canvas.setFont(font, 8)
        canvas.drawString(left, 800, made.running)
        canvas.drawCentredString(297, 40, str(document.page))
        if made.footnote and document.page == 1:
            canvas.line(left, 82, left + 120, 82)
            canvas.setFont(font, 7.5)
            canvas.drawString(left, 70, made.footnote)

    head = Frame(left, top - 60, right - left, 60, 0, 0, 0, 0)
    first = [head, *frames(top - 70)] if columns > 1 else frames(top)
    return [
        PageTemplate("first", first, onPage=decorate, autoNextPageTemplate="later"),
        PageTemplate("later", frames(top), onPage=decorate),
    ]


def _flowables(
    made: Made, columns: int, fonts: tuple[str, str], body: Callable[[str], Any]
) -> Iterator[Any]:
    from reportlab.platypus import FrameBreak, Spacer

    regular, bold = fonts
    for block in made.blocks:
        match block:
            case Centred(_, _, label, title):
                yield Paragraph(label, _style("label", regular, 10, spaceBefore=9, alignment=1))
                yield Paragraph(title, _style("title", bold, 10, spaceAfter=5, alignment=1))
            case Heading(level, text):
                size = 10 if made.bold_headings and level > 1 else _SIZES[level]
                yield Paragraph(text, _style(f"h{level}", bold, size, spaceBefore=9, spaceAfter=5))
                if level == 1 and columns > 1:
                    yield FrameBreak()
            case model.Paragraph(text):
                yield body(text)
            case Items(entries, numbered):
                yield _listed(entries, numbered, regular)
                yield Spacer(1, 7)
            case Grid():
                wide = columns > 1 or len(block.rows[0]) > 6
                yield _table(block, regular, bold, 7.5 if wide else 9)
                yield Spacer(1, 9)


class _Words(Flowable):  # type: ignore[misc]
    """Lines of single words at their places, without blanks between them, as TeX sets them."""

    def __init__(self, lines: list[str], font: str, below: float = 7) -> None:
        super().__init__()
        self._lines, self._font, self._below = lines, font, below

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        return width, 13 * len(self._lines) + self._below

    def split(self, width: float, height: float) -> "list[_Words]":
        fit = int(height // 13)
        if not fit:
            return []
        parts = (self._lines[:fit], 0.0), (self._lines[fit:], self._below)
        return [_Words(lines, self._font, gap) for lines, gap in parts]

    def draw(self) -> None:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        self.canv.setFont(self._font, 10)
        blank = stringWidth(" ", self._font, 10)
        for n, line in enumerate(self._lines, 1):
            x = 0.0
            for word in line.split():
                self.canv.drawString(x, 13 * (len(self._lines) - n) + self._below + 3, word)
                x += stringWidth(word, self._font, 10) + blank


def _style(name: str, font: str, size: float, **more: Any) -> Any:
    from reportlab.lib.styles import ParagraphStyle

    return ParagraphStyle(name, fontName=font, fontSize=size, leading=size * 1.3, **more)


def _listed(entries: tuple[tuple[int, str], ...], numbered: bool, font: str) -> Any:
    from reportlab.platypus import ListFlowable, ListItem

    parts: list[Any] = []
    for at, (depth, text) in enumerate(entries):
        if depth == 1:
            below = tuple((d - 1, t) for d, t in _below(entries[at + 1 :]))
            inner = [Paragraph(text, _style("item", font, 10))]
            parts.append(ListItem([*inner, _listed(below, False, font)] if below else inner))
    kind: dict[str, Any] = (
        {"bulletType": "1", "bulletFormat": "%s."}
        if numbered
        else {"bulletType": "bullet", "start": "•"}
    )
    return ListFlowable(parts, bulletFontName=font, bulletFontSize=10, **kind)


def _below(entries: tuple[tuple[int, str], ...]) -> Iterator[tuple[int, str]]:
    for depth, text in entries:
        if depth == 1:
            return
        yield depth, text


def _table(grid: Grid, regular: str, bold: str, size: float) -> Any:
    from reportlab.lib import colors
    from reportlab.platypus import Table

    heads = 2 if grid.spans else 1
    commands: list[tuple[Any, ...]] = [
        ("FONT", (0, 0), (-1, -1), regular, size),
        ("FONT", (0, 0), (-1, heads - 1), bold, size),
        ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]
    if grid.rules == "all":
        commands.append(("GRID", (0, 0), (-1, -1), 0.6, colors.black))
    if grid.rules == "across":
        commands += [(f"LINE{where}", (0, y), (-1, y), 0.6, colors.black) for where, y in _BOOK]
    if grid.spans:
        commands += [("SPAN", (1, 0), (-1, 0)), ("ALIGN", (1, 0), (-1, 0), "CENTER")]
    first, rest = (110, 345 / (len(grid.rows[0]) - 1)) if size >= 9 else (70, 50)
    # Long texts wrap inside their cell.
    style = _style("cell", regular, size)
    cells = [[Paragraph(c, style) if len(c) > 30 else c for c in row] for row in grid.full]
    widths = [first, *[rest] * (len(grid.rows[0]) - 1)]
    return Table(cells, colWidths=widths, style=commands, repeatRows=heads, hAlign="LEFT")


@functools.cache
def _fonts(face: str) -> tuple[str, str]:
    """Names of the regular and the bold font; both know Cyrillic."""
    from reportlab.pdfbase.pdfmetrics import registerFont
    from reportlab.pdfbase.ttfonts import TTFont

    names = []
    for file in _FACES[face]:
        there = [p for p in (Path(folder) / file for folder in _FOLDERS) if p.exists()]
        if not there:
            raise FileNotFoundError(f"no font {file}: install fonts-dejavu and fonts-liberation")
        registerFont(TTFont(f"made-{file}", str(there[0])))
        names.append(f"made-{file}")
    return names[0], names[1]
