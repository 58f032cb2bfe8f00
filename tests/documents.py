"""The same short text as a file of every format that is read."""

import csv
import io
import json
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

TITLE, HEADING = "Handbook of Fines", "Chapter 1 Amounts"
TEXT = (
    "The maximum fine for a breach in the {format} register is twenty million euro, and the "
    "authority decides on it after it heard the controller. The decision is sent in writing, with "
    "the reasons and with the name of the court that the controller may turn to within one month."
)


def text_of(format_: str) -> str:
    """The paragraph, which names the format."""
    return TEXT.format(format=format_)


def markdown() -> bytes:
    return f"# {TITLE}\n\n## {HEADING}\n\n{text_of('md')}\n".encode()


def plain(name: str = "txt") -> bytes:
    return f"{TITLE}\n\n{HEADING}\n\n{text_of(name)}\n".encode()


def html() -> bytes:
    return (
        f"<html><head><title>{TITLE}</title></head><body><nav><a href='/'>Home</a></nav><main>"
        f"<h1>{TITLE}</h1><h2>{HEADING}</h2><p>{text_of('html')}</p></main></body></html>"
    ).encode()


def csv_file() -> bytes:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["chapter", "text"])
    rows.writerow([HEADING, text_of("csv")])
    rows.writerow(["Chapter 2", "Nothing follows."])
    return out.getvalue().encode()


def json_file() -> bytes:
    return json.dumps({"title": TITLE, HEADING: {"text": text_of("json")}}).encode()


def docx() -> bytes:
    import docx as word

    document: Any = word.Document()
    document.add_heading(TITLE, 0)
    document.add_heading(HEADING, 1)
    document.add_paragraph(text_of("docx"))
    return _saved(document.save)


def xlsx() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = HEADING
    sheet.append(["register", "text"])
    sheet.append(["xlsx", text_of("xlsx")])
    return _saved(book.save)


def pptx() -> bytes:
    import pptx as powerpoint

    show: Any = powerpoint.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = HEADING
    slide.placeholders[1].text = text_of("pptx")
    return _saved(show.save)


def odt() -> bytes:
    import odfdo

    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, HEADING))
    document.body.append(odfdo.Paragraph(text_of("odt")))
    return _saved(document.save)


def ods() -> bytes:
    import odfdo

    document = odfdo.Document("spreadsheet")
    document.body.clear()
    table = odfdo.Table(HEADING)
    table.set_values([["register", "text"], ["ods", text_of("ods")]])
    document.body.append(table)
    return _saved(document.save)


def odp() -> bytes:
    import odfdo

    document = odfdo.Document("presentation")
    document.body.clear()
    page = odfdo.DrawPage("page1", name=HEADING)
    for kind, text in (("title", HEADING), ("outline", text_of("odp"))):
        frame = odfdo.Frame.text_frame(text, size=("20cm", "5cm"), position=("2cm", "3cm"))
        frame.presentation_class = kind
        page.append(frame)
    document.body.append(page)
    return _saved(document.save)


def epub() -> bytes:
    chapter = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>'
        f"<h1>{HEADING}</h1><p>{text_of('epub')}</p></body></html>"
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x'
        f"</dc:identifier><dc:title>{TITLE}</dc:title><dc:language>en</dc:language></metadata>"
        '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="c"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
        '<rootfiles><rootfile full-path="book.opf" '
        'media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", container)
        book.writestr("book.opf", package)
        book.writestr("c.xhtml", chapter)
    return out.getvalue()


def eml() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = TITLE, "a@example.org", "b@example.org"
    mail["Date"] = "Thu, 04 May 2023 10:06:11 +0200"
    mail.set_content(text_of("eml"))
    mail.add_attachment(
        plain("attached").decode(), subtype="plain", filename="Прилог.txt", charset="utf-8"
    )
    return mail.as_bytes()


def pdf() -> bytes:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    out, styles = io.BytesIO(), getSampleStyleSheet()
    SimpleDocTemplate(out, title=TITLE, invariant=1).build(
        [
            Paragraph(TITLE, styles["Title"]),
            Paragraph(HEADING, styles["Heading1"]),
            Paragraph(text_of("pdf"), styles["BodyText"]),
        ]
    )
    return out.getvalue()


def png() -> bytes:
    """The text as a picture, 150 dots per inch."""
    from textwrap import wrap

    from PIL import Image, ImageDraw

    page = Image.new("L", (1240, 900), 255)
    draw, font = ImageDraw.Draw(page), _font(26)
    draw.text((100, 80), HEADING, fill=0, font=_font(44))
    for number, line in enumerate(wrap(text_of("scanned"), 62)):
        draw.text((100, 190 + number * 44), line, fill=0, font=font)
    return _saved(lambda out: page.save(out, "PNG"))


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _saved(save: Callable[[Any], Any]) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "handbook.md": (markdown, "md"),
    "handbook.txt": (plain, "txt"),
    "handbook.log": (lambda: plain("log"), "log"),
    "handbook.html": (html, "html"),
    "handbook.csv": (csv_file, "csv"),
    "handbook.json": (json_file, "json"),
    "handbook.docx": (docx, "docx"),
    "handbook.xlsx": (xlsx, "xlsx"),
    "handbook.pptx": (pptx, "pptx"),
    "handbook.odt": (odt, "odt"),
    "handbook.ods": (ods, "ods"),
    "handbook.odp": (odp, "odp"),
    "handbook.epub": (epub, "epub"),
    "handbook.eml": (eml, "eml"),
    "handbook.pdf": (pdf, "pdf"),
    "handbook.png": (png, "scanned"),
}
"""Name of a file → its maker, and the word that only its text has."""


def write_all(folder: Path) -> list[Path]:
    """Every format as a file in `folder`."""
    paths = []
    for name, (make, _) in FILES.items():
        paths.append(folder / name)
        paths[-1].write_bytes(make())
    return paths
