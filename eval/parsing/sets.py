"""The evaluation data on this machine as cases: a file and what is known about it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVALDATA = Path(__file__).parents[3] / "shared" / "evaldata" / "parsing"


@dataclass(frozen=True)
class Case:
    """`reference`: Markdown it should become; `present`, `absent`: strings of its text.

    `pages` as the source has them; `encoding` of a text file; `skip`: measures that make no sense.
    """

    name: str
    path: Path
    format: str
    reference: str | None = None
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    pages: int | None = None
    encoding: str = ""
    skip: frozenset[str] = frozenset()


def docling() -> list[Case]:
    """Documents with a Markdown ground truth: docling's own output, reviewed upstream."""
    folder = EVALDATA / "docling"
    found = []
    for row in _rows(folder / "manifest.jsonl"):
        truth = [name for name in row["groundtruth"] if name.endswith(".md")]
        path = folder / row["file"]
        text = (folder / truth[0]).read_text("utf-8") if truth else None
        found.append(Case(row["file"], path, row["format"], text, pages=pages(path)))
    return found


def ocr() -> list[Case]:
    """Scans, some turned, with the Markdown of docling and tesseract where upstream has it."""
    folder = EVALDATA / "ocr_docling"
    found = []
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        truth = folder / "groundtruth" / f"{path.stem}.tesseract.full_page.md"
        text = truth.read_text("utf-8") if truth.exists() else None
        found.append(Case(path.name, path, "scan", text, pages=pages(path)))
    return found


def tika() -> list[Case]:
    """Odd real files with strings that Tika's tests look for."""
    folder = EVALDATA / "tika"
    return [
        Case(
            row["file"], folder / row["file"], row["format"],
            present=tuple(row["contains"]), absent=tuple(row["not_contains"]),
        )
        for row in _rows(folder / "manifest.jsonl")
    ]  # fmt: skip


def encodings() -> list[Case]:
    """Real pages and texts in many character sets."""
    folder = EVALDATA / "encodings"
    return [
        Case(row["file"], folder / row["file"], row["encoding"], encoding=row["encoding"])
        for row in _rows(folder / "manifest.jsonl")
    ]


def web() -> list[Case]:
    """Web pages with segments that belong, and do not belong, to the main content."""
    folder = EVALDATA / "trafilatura"
    return [
        Case(
            row["file"], folder / row["file"], "html",
            present=tuple(row["with"][:6]), absent=tuple(row["without"][:6]),
        )
        for row in _rows(folder / "annotations.jsonl")
    ]  # fmt: skip


def page_counts() -> list[Case]:
    """PDFs of many makers."""
    folder = EVALDATA / "pypdf_samples"
    return [Case(p.name, p, "pdf", pages=pages(p)) for p in sorted(folder.glob("*.pdf"))]


def malformed() -> list[Case]:
    """Broken and hostile files."""
    folder = EVALDATA / "malformed"
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "LICENSE")
    return [Case(p.relative_to(folder).as_posix(), p, p.suffix[1:]) for p in files]


def pages(path: Path) -> int | None:
    """Pages of a PDF by pdfium, slides of a PPTX; None for others and what cannot be opened."""
    if path.suffix == ".pptx":
        from zipfile import ZipFile

        with ZipFile(path) as file:
            return sum(
                n.startswith("ppt/slides/slide") and n.endswith(".xml") for n in file.namelist()
            )
    if path.suffix != ".pdf":
        return None
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError:
        return None
    try:
        return len(document)
    finally:
        document.close()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
