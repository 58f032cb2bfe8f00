"""Made documents as DOCX, PPTX, ODT and XLSX."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.parsing.made.model import Block, Centred, Grid, Heading, Items, Made, Paragraph
from eval.parsing.made.texts import Words


def write_docx(made: Made, path: Path) -> None:
    """Heading styles, a table grid, list styles, running head in the page header."""
    from docx import Document
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    document = Document()
    document.sections[0].header.paragraphs[0].text = made.running
    for block in made.blocks:
        match block:
            case Centred(_, _, label, title):
                for text, bold in ((label, False), (title, True)):
                    line = document.add_paragraph("")
                    line.alignment = WD_ALIGN_PARAGRAPH.CENTER
                    line.add_run(text).bold = bold
            case Heading(level, text):
                document.add_heading(text, level)
            case Paragraph(text):
                document.add_paragraph(text)
            case Items(entries, numbered):
                kind = "List Number" if numbered else "List Bullet"
                for depth, text in entries:
                    document.add_paragraph(text, f"{kind} {depth}" if depth > 1 else kind)
            case Grid():
                _docx_table(document, block)
    if made.footnote:
        document.add_paragraph(made.footnote)
    document.save(str(path))


def _docx_table(document: Any, grid: Grid) -> None:
    rows = grid.full
    table = document.add_table(len(rows), len(rows[0]), "Table Grid")
    for row, line in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, line, strict=True):
            cell.text = text
    if grid.spans:
        over = table.rows[0].cells
        over[1].merge(over[-1]).text = grid.spans


def write_odt(made: Made, path: Path) -> None:
    """The same by odfdo."""
    import odfdo

    document = odfdo.Document("text")
    document.body.clear()
    for block in made.blocks:
        match block:
            case Heading(level, text):
                document.body.append(odfdo.Header(level, text))
            case Paragraph(text):
                document.body.append(odfdo.Paragraph(text))
            case Items(entries):
                document.body.append(_odf_list(entries))
            case Grid():
                rows = block.full
                table = odfdo.Table("Grid", width=len(rows[0]), height=len(rows))
                table.set_values([list(row) for row in rows])
                document.body.append(table)
    if made.footnote:
        document.body.append(odfdo.Paragraph(made.footnote))
    document.save(str(path))


def _odf_list(entries: tuple[tuple[int, str], ...]) -> Any:
    import odfdo

    top = odfdo.List()
    for depth, text in entries:
        item = odfdo.ListItem(text)
        if depth == 1:
            top.append(item)
            continue
        last = top.get_elements("text:list-item")[-1]
        inner = last.get_elements("text:list")
        if not inner:
            last.append(odfdo.List())
        last.get_elements("text:list")[0].append(item)
    return top


def write_ods(words: Words, path: Path) -> str:
    """Two sheets by odfdo; their Markdown."""
    import odfdo

    book = odfdo.Document("spreadsheet")
    book.body.clear()
    parts: list[Block] = []
    for name, rows in ((words.parts[0], words.table), (words.parts[1], words.table[::2])):
        sheet = odfdo.Table(name, width=len(rows[0]), height=len(rows))
        sheet.set_values([list(row) for row in rows])
        book.body.append(sheet)
        parts += [Heading(1, name), Grid(rows)]
    book.save(str(path))
    return Made("", words.language, tuple(parts)).markdown


def write_odp(made: Made, path: Path) -> None:
    """A page for each heading: its title in a frame, text and items below in another."""
    import odfdo

    show = odfdo.Document("presentation")
    show.body.clear()
    for n, (title, blocks) in enumerate(slides(made)):
        page = odfdo.DrawPage(f"page{n}", name=f"Page {n + 1}")
        texts = [t for block in blocks for t in _texts(block)]
        for y, kind, lines in ((1, "title", [title]), (5, "outline", texts)):
            frame = odfdo.Frame.text_frame(
                [odfdo.Paragraph(line) for line in lines],
                size=("20cm", "3cm"),
                position=("2cm", f"{y}cm"),
                presentation_class=kind,
            )
            page.append(frame)
        show.body.append(page)
    show.save(str(path))


def _texts(block: Block) -> list[str]:
    match block:
        case Paragraph(text):
            return [text]
        case Items(entries):
            return [text for _, text in entries]
    return []


def slides(made: Made) -> Iterator[tuple[str, list[Any]]]:
    """Title and blocks of each slide: one for each heading."""
    title, blocks = "", list[Any]()
    for block in made.blocks:
        if isinstance(block, Heading):
            if title:
                yield title, blocks
            title, blocks = block.text, []
        else:
            blocks.append(block)
    yield title, blocks


def write_pptx(made: Made, path: Path) -> None:
    """A slide for each heading: its title, text and lists in the body, tables below."""
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    for title, blocks in slides(made):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        frame = slide.placeholders[1].text_frame
        entries: list[tuple[int, str]] = []
        for block in blocks:
            if isinstance(block, Paragraph):
                entries.append((1, block.text))
            elif isinstance(block, Items):
                entries += block.entries
            elif isinstance(block, Grid):
                shape = slide.shapes.add_table(
                    len(block.rows), len(block.rows[0]), Inches(1), Inches(5), Inches(8), Inches(2)
                )
                for y, row in enumerate(block.rows):
                    for x, text in enumerate(row):
                        shape.table.cell(y, x).text = text
        for at, (depth, text) in enumerate(entries):
            paragraph = frame.paragraphs[0] if not at else frame.add_paragraph()
            paragraph.text, paragraph.level = text, depth - 1
    show.save(str(path))


def write_rows(path: Path, rows: int) -> None:
    """One sheet of `rows` rows of four cells."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    sheet.append(["number", "text", "day", "price"])
    for n in range(rows):
        sheet.append([n, "plain words of a cell", datetime.date(2024, 1, 15), 3.25])
    book.save(path)


def write_xlsx(words: Words, path: Path) -> str:
    """Two sheets, the second starting off the corner, with numbers and dates; its Markdown."""
    from openpyxl import Workbook

    book = Workbook()
    first, second = book.active, book.create_sheet(words.parts[1])
    first.title = words.parts[0]
    for row in words.table:
        first.append(row)
    days = [datetime.date(2024, month, 15) for month in (1, 2, 3)]
    head = (words.table[0][0], words.table[0][3], words.table[0][2])
    for x, text in enumerate(head):
        second.cell(3, 2 + x, text)
    for y, (row, day) in enumerate(zip(words.table[1:], days, strict=True)):
        for x, value in enumerate((row[0], day, 10.5 + y)):
            second.cell(4 + y, 2 + x, value)
    book.save(path)
    dated = [
        (row[0], day.isoformat(), str(10.5 + y))
        for y, (row, day) in enumerate(zip(words.table[1:], days, strict=True))
    ]
    parts = (
        Heading(1, words.parts[0]), Grid(words.table),
        Heading(1, words.parts[1]), Grid((head, *dated)),
    )  # fmt: skip
    return Made("", words.language, parts).markdown
