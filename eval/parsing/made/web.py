"""Made documents as HTML, EPUB and mail; data as CSV and JSON."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from html import escape
from pathlib import Path

from eval.parsing.made.model import Grid, Heading, Items, Made, Paragraph
from eval.parsing.made.texts import Words

NAVIGATION = ("Home page", "Subscribe to our newsletter", "We use cookies to improve our service")
"""Text around the content of a page, which must not come through."""


def html(made: Made, charset: str = "utf-8") -> str:
    """A page with navigation, a cookie notice, an aside and a foot around its article."""
    home, subscribe, cookies = NAVIGATION
    return (
        f'<!DOCTYPE html><html lang="{made.language[:2]}"><head><meta charset="{charset}">'
        f"<title>{escape(made.title)}</title><script>var spoken = 'no';</script></head><body>"
        f'<div class="cookie-banner" role="dialog"><p>{cookies}</p><button>OK</button></div>'
        f'<nav><ul><li><a href="/">{home}</a></li><li><a href="/b">B</a></li></ul></nav>'
        f"<main><article>{''.join(_elements(made))}</article></main>"
        f'<aside class="newsletter"><p>{subscribe}</p></aside>'
        f"<footer><p>{escape(made.running)}</p></footer></body></html>"
    )


def write_html(made: Made, path: Path, *, charset: str = "utf-8") -> None:
    path.write_bytes(html(made, charset).encode(charset))


def write_epub(made: Made, path: Path) -> None:
    """Two chapters in the order of the spine, which is not that of the names."""
    elements = list(_elements(made))
    middle = len(elements) // 2
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
    texts = {"z.xhtml": "".join(elements[:middle]), "a.xhtml": "".join(elements[middle:])}
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(
            "META-INF/container.xml",
            '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OEBPS/book.opf" '
            'media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        book.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">made'
            f"</dc:identifier><dc:title>{escape(made.title)}</dc:title>"
            f"<dc:language>{made.language[:2]}</dc:language></metadata><manifest>"
            '<item id="one" href="z.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="two" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
        )
        for name, text in texts.items():
            book.writestr(f"OEBPS/{name}", page.format(text))


def write_eml(made: Made, path: Path, *, charset: str = "utf-8") -> None:
    """A mail with a text and an HTML body, and a table attached."""
    mail = EmailMessage()
    mail["Subject"] = made.title
    mail["From"], mail["To"] = "archive@example.org", "reader@example.org"
    mail["Date"] = "Mon, 15 Jan 2024 10:00:00 +0100"
    plain = "\n\n".join(b.text for b in made.blocks if isinstance(b, Paragraph))
    mail.set_content(plain, charset=charset)
    rich = f"<html><body>{''.join(_elements(made))}</body></html>"
    mail.add_alternative(rich, "html", charset=charset)
    mail.add_attachment(b"a;b\n1;2\n", "text", "csv", filename="table.csv")
    path.write_bytes(mail.as_bytes())


def write_csv(words: Words, path: Path, *, charset: str = "utf-8", separator: str = ",") -> str:
    """A table with a separator and a line end inside cells; its Markdown."""
    rows = (*words.table, (f"A{separator}B", "1", "two\nlines", "2020"))
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    path.write_bytes(out.getvalue().encode(charset))
    flat = tuple(tuple(" ".join(cell.split("\n")) for cell in row) for row in rows)
    return Made("", words.language, (Grid(flat),)).markdown


def write_json(words: Words, path: Path) -> str:
    """Keys three levels deep, in letters of the language; its headings as Markdown."""
    one, two, three, four, *_ = words.parts
    data = {one: {two: words.sentences[0], three: {four: words.sentences[1]}}, "n": 412}
    path.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    parts = (
        Heading(1, one), Heading(2, two), Paragraph(words.sentences[0]), Heading(2, three),
        Heading(3, four), Paragraph(words.sentences[1]), Heading(1, "n"), Paragraph("412"),
    )  # fmt: skip
    return Made("", words.language, parts).markdown


def _elements(made: Made) -> Iterator[str]:
    for block in made.blocks:
        match block:
            case Heading(level, text):
                yield f"<h{level}>{escape(text)}</h{level}>"
            case Paragraph(text):
                yield f"<p>{escape(text)}</p>"
            case Items(entries, numbered):
                yield _list(entries, "ol" if numbered else "ul")
            case Grid():
                yield f"<table>{''.join(_table_rows(block))}</table>"
    if made.footnote:
        yield f"<p>{escape(made.footnote)}</p>"


def _table_rows(grid: Grid) -> Iterator[str]:
    if grid.spans:
        first, *rest = grid.rows[0]
        over = f'<th colspan="{len(rest)}">{escape(grid.spans)}</th>'
        yield f"<tr><th>{escape(first)}</th>{over}</tr>"
    for at, row in enumerate(grid.rows):
        tag = "td" if at else "th"
        yield f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"


def _list(entries: tuple[tuple[int, str], ...], tag: str) -> str:
    """Nested as in the specification: an inner list lies inside the item before it."""
    out, depth = [], 0
    for at, text in entries:
        out.append(f"<{tag}>" * (at - depth) if at > depth else "</li>")
        out += [f"</{tag}></li>" for _ in range(depth - at)]
        out.append(f"<li>{escape(text)}")
        depth = at
    return "".join(out) + f"</li></{tag}>" * depth
