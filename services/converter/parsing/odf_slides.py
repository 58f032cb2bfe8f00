"""ODP: a slide is a section; its notes, hidden slides and what lies beside are hidden."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.artifacts import Place
from kernel.errors import Refusal
from kernel.media import ODP
from services.converter.parsing.archive import Archive
from services.converter.parsing.odf import (
    BOXES,
    CONTENT,
    DRAW,
    FO,
    OFFICE,
    PRESENTATION,
    STYLE,
    SVG,
    TEXT,
    check,
    metadata,
    plain,
    points,
)
from services.converter.parsing.odf_objects import Objects
from services.converter.parsing.odf_text import TextWriter, finished
from services.converter.parsing.office import part
from services.converter.parsing.result import Parse
from services.converter.parsing.wordml import parse_xml
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_FURNITURE = frozenset({"footer", "header", "date-time", "page-number"})


def parse_odp(path: Path, options: ParseOptions) -> Parse:
    """A presentation.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `too-many-pages`, `too-large`, `empty-document`.
    """
    with Archive(path, options) as archive:
        check(archive)
        root, design = parse_xml(archive.read(CONTENT)), part(archive, "styles.xml")
        pages = root.findall(f"{OFFICE}body/{OFFICE}presentation/{DRAW}page")
        meta, facts = metadata(archive, ODP, pages=len(pages))
        objects = Objects(archive)
    if len(pages) > options.max_pages:
        raise Refusal("too-many-pages", f"{len(pages)} slides, at most {options.max_pages}")
    out = Writer(options.max_output_bytes)
    writer = TextWriter(root, design, objects, out, options.max_depth)
    size = _size(design)
    for number, page in enumerate(pages, 1):
        _page(page, number, writer, size)
    return finished(writer, meta, facts, archive.warnings, objects.files)


def _size(design: Any | None) -> tuple[float, float] | None:
    """Width and height of the slides in points."""
    for layout in () if design is None else design.iter(STYLE + "page-layout-properties"):
        width, height = (points(layout.get(FO + f"page-{side}")) for side in ("width", "height"))
        if width and height and width > height:
            return width, height
    return None


def _page(page: Any, number: int, writer: TextWriter, size: tuple[float, float] | None) -> None:
    for notes in page.iter(PRESENTATION + "notes"):
        writer.hidden.add("notes", " ".join(plain(p) for p in notes.iter(TEXT + "p")))
    for remark in page.findall(OFFICE + "annotation"):
        writer.hidden.add("comment", plain(remark))
    visibility = PRESENTATION + "visibility"
    style = page.get(DRAW + "style-name")
    if writer.styles.get("drawing-page", style, "drawing-page-properties", visibility) == "hidden":
        writer.hidden.add("invisible-style", " ".join(plain(s) for s in _shapes(page)))
        return
    # The title first: it names the section, wherever it lies.
    shapes = sorted(_shapes(page), key=lambda s: s.get(PRESENTATION + "class") != "title")
    for shape in shapes:
        box = _box(shape)
        kind = shape.get(PRESENTATION + "class")
        if kind in _FURNITURE:
            writer.hidden.add("notes", plain(shape))
        elif box and size and not _on_page(box, size):
            writer.hidden.add("off-page", plain(shape))
        elif kind == "title":
            place = Place(page=number, box=box)
            title = writer.title_of(shape)
            writer.out.block(f"# {title}" if title else "", place)
        else:
            writer.place = Place(page=number, box=box)
            writer.write([shape])


def _shapes(page: Any) -> Iterator[Any]:
    return (child for child in page if child.tag in BOXES)


def _box(shape: Any) -> tuple[float, float, float, float] | None:
    sides = [points(shape.get(SVG + side)) for side in ("x", "y", "width", "height")]
    if any(side is None for side in sides):
        return None
    left, top, width, height = (float(side or 0) for side in sides)
    return (round(left, 1), round(top, 1), round(left + width, 1), round(top + height, 1))


def _on_page(box: tuple[float, float, float, float], size: tuple[float, float]) -> bool:
    return box[2] > 0 and box[3] > 0 and box[0] < size[0] and box[1] < size[1]
