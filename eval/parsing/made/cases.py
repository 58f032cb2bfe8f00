"""The made documents as cases, written into a folder."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from eval.parsing.made import hostile, office, pdf, web
from eval.parsing.made.big import write_big
from eval.parsing.made.model import (
    Block,
    Grid,
    Heading,
    Made,
    Paragraph,
    law,
    long_table,
    paper,
    regulation,
    report,
    tables,
)
from eval.parsing.made.texts import WORDS, Words
from eval.parsing.sets import Case

Writer = Callable[[Made, Path], None]

_SOME = ("en", "ru", "sr-Latn")


def made(folder: Path) -> list[Case]:
    """Every kind in some or all languages; `format` also tells the kind."""
    by_language = {words.language: words for words in WORDS}
    some = [by_language[name] for name in _SOME]
    cases = [*_pdfs(folder, some), *_data(folder, some)]
    for words in WORDS:
        document = report(words)
        cases.append(_case(folder, "docx", "docx", document, office.write_docx))
        cases.append(_case(folder, "html", "html", document, web.write_html))
    others: dict[str, Writer] = {
        "odt": office.write_odt, "epub": web.write_epub, "eml": web.write_eml,
    }  # fmt: skip
    for words in some:
        cases.append(_case(folder, "docx tables", "docx", tables(words), office.write_docx))
        cases.append(_case(folder, "html tables", "html", tables(words), web.write_html))
        for kind, write in others.items():
            cases.append(_case(folder, kind, kind, report(words), write))
        cases.append(_slides(folder, report(words), "pptx", office.write_pptx))
        cases.append(_slides(folder, law(words), "odp", office.write_odp))
    for charset in ("windows-1251", "koi8-r"):
        document = replace(report(by_language["ru"]), name=f"report-{charset}")
        cases.append(_case(folder, "html", "html", document, _html_in(charset)))
    return cases


def broken(folder: Path) -> list[Case]:
    """Hostile files made here."""
    return [Case(path.name, path, path.suffix[1:]) for path in hostile.write_hostile(folder)]


def big(folder: Path, names: frozenset[str] = frozenset()) -> list[Case]:
    """Large files of all kinds, or those of these names."""
    return [Case(p.name, p, p.suffix[1:]) for p in write_big(folder, names)]


def _html_in(charset: str) -> Writer:
    return lambda document, path: web.write_html(document, path, charset=charset)


def _pdfs(folder: Path, some: list[Words]) -> list[Case]:
    def columns(document: Made, path: Path) -> None:
        pdf.write_pdf(document, path, columns=2, face="serif")

    def hyphens(document: Made, path: Path) -> None:
        pdf.write_pdf(document, path, columns=2, hyphens=True)

    cases = []
    for words in WORDS:
        cases.append(_case(folder, "pdf report", "pdf", report(words), pdf.write_pdf))
        form = regulation(words)
        cases.append(_case(folder, "pdf regulation", "pdf", form, pdf.write_pdf, skip={"items"}))
        cases.append(
            _case(folder, "docx regulation", "docx", form, office.write_docx, skip={"items"})
        )
        cases.append(_case(folder, "pdf law", "pdf", law(words), pdf.write_pdf))
    for words in some:
        document = report(words, numbered=False)
        cases.append(_case(folder, "pdf sizes", "pdf", document, pdf.write_pdf))
        bold = replace(document, name=f"bold-{words.language}", bold_headings=True)
        # Nothing tells the levels of such headings but the title's.
        cases.append(_case(folder, "pdf bold", "pdf", bold, pdf.write_pdf, skip={"tree"}))
        two = replace(report(words), name=f"columns-{words.language}", footnote="")
        cases.append(_case(folder, "pdf columns", "pdf", two, columns))
        cases.append(_case(folder, "pdf paper", "pdf", paper(words), hyphens))
        cases.append(_case(folder, "pdf tables", "pdf", tables(words), pdf.write_pdf))
        cases.append(_case(folder, "pdf long table", "pdf", long_table(words), pdf.write_pdf))
    return cases


def _data(folder: Path, some: list[Words]) -> list[Case]:
    cases = []
    for words, separator, charset in zip(
        some, (",", ";", "\t"), ("utf-8", "windows-1251", "utf-16"), strict=True
    ):
        name = f"data-{words.language}"
        csv = partial(web.write_csv, charset=charset, separator=separator)
        writers: dict[str, Callable[[Words, Path], str]] = {
            "xlsx": office.write_xlsx, "ods": office.write_ods, "json": web.write_json, "csv": csv,
        }  # fmt: skip
        for kind, write in writers.items():
            path = folder / f"{name}.{kind}"
            cases.append(Case(path.name, path, kind, write(words, path)))
    return cases


def _slides(folder: Path, document: Made, suffix: str, write: Writer) -> Case:
    """Slides have no levels: a title is a heading, one like another; tables stand last."""
    blocks: list[Block] = []
    for title, below in office.slides(document):
        blocks += [Heading(1, title), *sorted(below, key=lambda b: isinstance(b, Grid))]
    bare = replace(document, blocks=tuple(blocks), running="", footnote="")
    skip = {"tree", "items"}
    return _case(folder, suffix, suffix, bare, write, skip=skip)


def _case(
    folder: Path,
    kind: str,
    suffix: str,
    document: Made,
    write: Writer,
    skip: set[str] | None = None,
) -> Case:
    path = folder / f"{document.name}.{suffix}"
    write(document, path)
    shown = suffix in {"pdf", "docx", "html"} and document.running
    unwanted = [document.running] if shown else []
    if suffix == "html":
        unwanted += web.NAVIGATION
    last = next(b.text for b in reversed(document.blocks) if isinstance(b, Paragraph))
    return Case(
        path.name, path, kind, document.markdown,
        present=tuple(filter(None, (document.footnote, last))),
        absent=tuple(unwanted), skip=frozenset(skip or ()),
    )  # fmt: skip
