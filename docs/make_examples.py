"""Makes the DOCX and PDF files of docs/examples/ from the Markdown in docs/examples_src/.

    python docs/make_examples.py [FOLDER]

The same sources give the same bytes: dates and ids are fixed. PDFs need the fonts DejaVu Sans
(Debian and Ubuntu: fonts-dejavu-core), because they have Cyrillic and Slovenian letters.
"""

import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

DOCS = Path(__file__).parent
SOURCES = DOCS / "examples_src"
EXAMPLES = DOCS / "examples"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FORMATS: dict[str, Literal["docx", "pdf"]] = {
    "pravilnik-knjiznice": "pdf",
    "ugovor-o-zakupu": "docx",
    "ustav-tovarischestva": "docx",
    "waermepumpe-anleitung": "pdf",
}
"""Which source becomes what."""
_DAY = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Block:
    """One piece of a source: a heading has a `level` from 1, a table `rows`, all others `text`."""

    kind: Literal["heading", "paragraph", "bullet", "number", "table"]
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


def blocks(markdown: str) -> Iterator[Block]:
    """The blocks of a source, in order: one line a paragraph or list item, no inline marks."""
    for part in re.split(r"\n\s*\n", markdown.strip()):
        lines = part.strip().splitlines()
        if lines[0].startswith("|"):
            cells = [tuple(c.strip() for c in line.strip("| ").split("|")) for line in lines]
            yield Block("table", rows=(cells[0], *cells[2:]))
            continue
        for line in lines:
            yield _line(line)


def _line(line: str) -> Block:
    if match := re.match(r"(#+) (.*)", line):
        return Block("heading", match[2], level=len(match[1]))
    if line.startswith("- "):
        return Block("bullet", line[2:])
    if re.match(r"\d+\. ", line):
        return Block("number", line.partition(" ")[2])
    return Block("paragraph", line)


def docx(source: list[Block]) -> bytes:
    """A Word document with real heading, list and table styles."""
    from docx import Document

    document = Document()
    properties = document.core_properties
    properties.title, properties.author = source[0].text, "citelog"
    properties.created = properties.modified = _DAY.replace(tzinfo=None)
    styles = {"bullet": "List Bullet", "number": "List Number", "paragraph": None}
    for block in source:
        if block.kind == "heading":
            document.add_heading(block.text, level=block.level)
        elif block.kind == "table":
            _docx_table(document, block.rows)
        else:
            document.add_paragraph(block.text, style=styles[block.kind])
    out = BytesIO()
    document.save(out)
    return _without_dates(out.getvalue())


def _docx_table(document: Any, rows: tuple[tuple[str, ...], ...]) -> None:
    table = document.add_table(rows=len(rows), cols=len(rows[0]), style="Table Grid")
    for cells, row in zip(table.rows, rows, strict=True):
        for cell, text in zip(cells.cells, row, strict=True):
            cell.text = text


def _without_dates(data: bytes) -> bytes:
    """The same zip archive with one date on every member."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            member = zipfile.ZipInfo(name, _DAY.timetuple()[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(member, old.read(name))
    return out.getvalue()


def pdf(source: list[Block]) -> bytes:
    """An A4 document with headings by size, ruled tables and page numbers.

    Raises:
        FileNotFoundError: the fonts are not installed.
    """
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.lib.units import mm
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    for name, file in (("Body", "DejaVuSans.ttf"), ("Bold", "DejaVuSans-Bold.ttf")):
        if not (FONTS / file).is_file():
            raise FileNotFoundError(FONTS / file)
        pdfmetrics.registerFont(TTFont(name, FONTS / file))
    body = ParagraphStyle("body", fontName="Body", fontSize=10, leading=14, spaceAfter=6)
    headings = [
        ParagraphStyle(
            f"h{n}", fontName="Bold", fontSize=size, leading=size * 1.3, spaceBefore=10,
            spaceAfter=6, keepWithNext=1,
        )
        for n, size in enumerate((18, 14, 11.5), start=1)
    ]  # fmt: skip
    item = ParagraphStyle("item", parent=body, leftIndent=14, bulletIndent=2, spaceAfter=3)
    flow: list[Any] = []
    number = 0
    for block in source:
        number = number + 1 if block.kind == "number" else 0
        if block.kind == "heading":
            flow.append(Paragraph(_plain(block.text), headings[block.level - 1]))
        elif block.kind == "table":
            flow.append(_pdf_table(block.rows, body))
        elif block.kind == "paragraph":
            flow.append(Paragraph(_plain(block.text), body))
        else:
            mark = f"{number}." if number else "•"
            flow.append(Paragraph(_plain(block.text), item, bulletText=mark))
    out = BytesIO()
    template = SimpleDocTemplate(
        out, pagesize=A4, title=source[0].text, author="citelog", invariant=1, leftMargin=24 * mm,
        rightMargin=24 * mm, topMargin=22 * mm, bottomMargin=24 * mm,
    )  # fmt: skip
    template.build(flow, onFirstPage=_page_number, onLaterPages=_page_number)
    return out.getvalue()


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _pdf_table(rows: tuple[tuple[str, ...], ...], body: Any) -> Any:
    from reportlab.lib import colors
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Table, TableStyle

    cell = ParagraphStyle("cell", parent=body, fontSize=9, leading=12, spaceAfter=0)
    head = ParagraphStyle("head", parent=cell, fontName="Bold")
    table = Table(
        [[Paragraph(_plain(t), head if n == 0 else cell) for t in r] for n, r in enumerate(rows)],
        hAlign="LEFT", spaceBefore=4, spaceAfter=10,
    )  # fmt: skip
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)]))
    return table


def _page_number(canvas: Any, document: Any) -> None:
    canvas.setFont("Body", 8)
    canvas.drawCentredString(document.pagesize[0] / 2, 34, str(document.page))


def main(folder: Path = EXAMPLES) -> None:
    """Write all files into `folder`."""
    makers = {"docx": docx, "pdf": pdf}
    for name, kind in FORMATS.items():
        source = list(blocks((SOURCES / f"{name}.md").read_text("utf-8")))
        (folder / f"{name}.{kind}").write_bytes(makers[kind](source))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
