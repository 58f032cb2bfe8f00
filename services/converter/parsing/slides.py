"""PPTX by python-pptx: a slide a section, each shape with its box; the unseen for the scanner.

Not by docling: it tells no box of a shape and no hidden slide, and mixes what lies beside the
slide into the text.
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import PPTX
from services.converter.parsing.archive import Archive
from services.converter.parsing.charts import chart_blocks
from services.converter.parsing.embedded import embedded_files, list_files
from services.converter.parsing.hidden import Unseen, is_sentence
from services.converter.parsing.literal import paragraph, plain_line, span
from services.converter.parsing.looks import Links, Runs, literal, plain_text
from services.converter.parsing.markdown import LONGEST_REPEATED
from services.converter.parsing.office import properties, side_part, whole_copy
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.slide_text import (
    A,
    Bullets,
    Inline,
    Line,
    P,
    is_painted,
    lines_of,
    page_colour,
    painted_colour,
    runs_of,
    text_of,
)
from services.converter.parsing.table_text import styled_row, table_row, table_rule
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_NEEDED = re.compile(
    r"\[Content_Types\]\.xml|(?:.*/)?_rels/.*\.rels|ppt/presentation\.xml"
    r"|ppt/(?:slides|slideLayouts|slideMasters|diagrams)/.*\.xml"
)
"""Parts that hold text, or without which it would be another."""

_BESIDE = re.compile(r"ppt/presentation\.xml|ppt/tags/[^/]+\.xml|customXml/item\d+\.xml")
_MOST_SAID = 2000
_EMU_PER_POINT = 12700
_MOST_DEPTH = 30
Box = tuple[float, float, float, float]


class _Frame(NamedTuple):
    """How a group maps its inner coordinates onto the slide: offset and scale of both axes."""

    x: float = 0.0
    y: float = 0.0
    across: float = 1.0
    down: float = 1.0


@cache
def _damage() -> tuple[type[Exception], ...]:
    """What python-pptx raises on damaged files."""
    from pptx.exc import PythonPptxError

    return (
        PythonPptxError, KeyError, ValueError, AttributeError, IndexError, TypeError,
        OverflowError, struct.error, NotImplementedError, zipfile.BadZipFile, etree.LxmlError,
        OSError, ZeroDivisionError, RecursionError, zlib.error,
    )  # fmt: skip


def parse_pptx(path: Path, options: ParseOptions) -> Parse:
    """A presentation.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`,
            `too-many-pages`, `too-large`, `empty-document`.
    """
    with Archive(path, options) as archive:
        archive.refuse_document_types()
        facts = properties(archive)
        comments = _comments(archive)
        said = list(islice(_said_beside(archive), _MOST_SAID))
        files = embedded_files(archive)
        deck = _Deck(_opened(path, archive), options)
        warnings = archive.warnings
    for comment in comments:
        deck.hidden.add("comment", comment)
    for text in said:
        deck.hidden.add("metadata", text)
    deck.write()
    list_files(deck.writer, files)
    if deck.writer.empty:
        raise Refusal("empty-document", "the presentation has no visible text")
    markdown, spans = deck.writer.finish()
    metadata = [HiddenText(kind="metadata", text=text) for text in facts.values()]
    meta = BodyMeta(
        title=told_title(line(facts.get("title"))),
        language=UNKNOWN,
        media_type=PPTX,
        author=line(facts.get("creator")) or None,
        date=facts.get("created"),
        pages=deck.pages,
    )
    document = ParsedDocument(
        markdown=markdown,
        hidden=tuple(dict.fromkeys([*deck.hidden.taken(), *metadata])),
        meta=meta,
        spans=spans,
    )
    return Parse(document, warnings, files=tuple(files))


def _opened(path: Path, archive: Archive) -> Any:
    """The presentation; where it is damaged, without the parts that hold no text.

    Raises:
        Refusal: `corrupt-document`, `decompression-bomb`.
    """
    import pptx

    with suppress(*_damage()):
        return pptx.Presentation(str(path))
    try:
        return pptx.Presentation(whole_copy(archive, {}, _NEEDED))
    except _damage() as error:
        raise Refusal("corrupt-document", "the presentation cannot be read") from error


def _said_beside(archive: Archive) -> Iterator[str]:
    """Sentences in names of sections, tags and data for programs."""
    for name in sorted(archive.names):
        if _BESIDE.fullmatch(name):
            root = side_part(archive, name)
            for element in () if root is None else root.iter():
                told = (element.text or "", element.get("val") or "", element.get("name") or "")
                yield from filter(is_sentence, told)


def _comments(archive: Archive) -> list[str]:
    found: list[str] = []
    for name in sorted(archive.names):
        if re.fullmatch(r"ppt/comments/[^/]+\.xml", name):
            root = side_part(archive, name)
            for comment in () if root is None else root:
                text = " ".join(e.text for e in comment.iter(A + "t", P + "text") if e.text)
                found += [text] if text else []
    return found


class _Deck:
    def __init__(self, deck: Any, options: ParseOptions) -> None:
        self._deck = deck
        self.writer = Writer(options.max_output_bytes)
        self.hidden = Unseen()
        self._designs: dict[int, Any] = {}
        """Layouts and masters that were seen, held so that their identity is theirs."""
        try:
            self._size = (
                (self._deck.slide_width or 0) / _EMU_PER_POINT,
                (self._deck.slide_height or 0) / _EMU_PER_POINT,
            )
            self.pages = len(self._deck.slides)
        except _damage() as error:
            raise Refusal("corrupt-document", "the presentation cannot be read") from error
        if self.pages > options.max_pages:
            raise Refusal("too-many-pages", f"{self.pages} slides, at most {options.max_pages}")

    def write(self) -> None:
        """Every slide in order."""
        try:
            for number, slide in enumerate(self._deck.slides, 1):
                _choose(slide.element)
                self._slide(slide, number)
        except _damage() as error:
            raise Refusal("corrupt-document", "a slide is damaged") from error

    def _slide(self, slide: Any, number: int) -> None:
        for design in (slide.slide_layout, slide.slide_layout.slide_master):
            # On every slide, like a running head; once is enough for the scanner.
            if id(design.element) not in self._designs:
                self._designs[id(design.element)] = design
                for shape in design.shapes:
                    if not shape.is_placeholder:
                        self.hidden.add("notes", text_of(shape._element))
        if slide.has_notes_slide:
            self.hidden.add("notes", _notes(slide.notes_slide))
        for names in slide.element.iter(P + "cNvPr"):
            for told in ("descr", "title"):
                self.hidden.add("alt-text", names.get(told) or "")
            self._say("attribute", names.get("name"))
        for link in slide.element.iter(A + "hlinkClick", A + "hlinkHover"):
            self._say("attribute", link.get("tooltip"))
        if slide.element.get("show") in {"0", "false"}:
            texts = [text_of(slide.element), *_diagram_texts(slide.element, slide.part)]
            self.hidden.add("invisible-style", " ".join(texts))
            return
        _SlideWriter(self, slide, number).write()

    def _say(self, kind: HiddenKind, text: str | None) -> None:
        if text and is_sentence(text):
            self.hidden.add(kind, text)

    def place(self, number: int, box: Box | None) -> Place:
        """A box of a slide, cut to the slide."""
        if box is None:
            return Place(page=number)
        width, height = self._size
        left, top, right, bottom = (round(v, 1) for v in box)
        inside = (max(0.0, left), max(0.0, top), min(width, right), min(height, bottom))
        return Place(page=number, box=inside)

    def outside(self, box: Box | None) -> bool:
        """Whether nothing of a box lies on the slide."""
        if box is None or not all(self._size):
            return False
        width, height = self._size
        return box[2] <= 0 or box[3] <= 0 or box[0] >= width or box[1] >= height


def _choose(root: Any) -> None:
    """Newer markup comes with an older twin: one of them is enough."""
    for choice in list(root.iter(_MC + "AlternateContent")):
        parent = choice.getparent()
        wanted = choice.find(_MC + "Choice")
        drawn = wanted is not None and next(wanted.iter(P + "graphicFrame"), None) is not None
        if wanted is None or not (drawn or text_of(wanted)):
            wanted = choice.find(_MC + "Fallback")
        for child in () if wanted is None else list(wanted):
            choice.addprevious(child)
        if parent is not None:
            parent.remove(choice)


def _notes(notes: Any) -> str:
    frame = notes.notes_text_frame
    return "" if frame is None else str(frame.text)


class _SlideWriter:
    def __init__(self, deck: _Deck, slide: Any, number: int) -> None:
        self._deck, self._slide, self._number = deck, slide, number
        self._writer = deck.writer
        self._title = _title_of(slide)
        self._bullets = Bullets(slide)
        self._inline = Inline(slide.part, Links(), deck.hidden)
        self._ground = page_colour(slide)
        self._painted: list[Box] = []
        """Boxes of pictures and filled shapes so far: text on them may have any colour."""
        self._written: list[tuple[Box, str]] = []
        """Texts so far, with their boxes."""

    def write(self) -> None:
        if self._title is not None:
            box = _box(self._title, _Frame())
            text = _visible_text(self._lines(self._title, box))
            if text and not self._deck.outside(box):
                self._writer.heading(text, 1, self._deck.place(self._number, box))
        # It may lie above all shapes, wherever it stands.
        self._written.clear()
        for shape in self._slide.shapes:
            self._shape(shape, _Frame(), 0)

    def _shape(self, shape: Any, frame: _Frame, depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise Refusal("too-deep", f"groups nested more than {_MOST_DEPTH} deep")
        box = _box(shape, frame)
        names = next(shape._element.iter(P + "cNvPr"), None)
        hidden = names is not None and names.get("hidden") in {"1", "true"}
        if hidden or self._deck.outside(box):
            self._deck.hidden.add(
                "invisible-style" if hidden else "off-page", text_of(shape._element)
            )
            return
        if self._title is not None and shape.shape_id == self._title.shape_id and not depth:
            return
        before = len(self._written)
        if hasattr(shape, "shapes"):
            inner = _inner(shape, frame)
            for child in shape.shapes:
                self._shape(child, inner, depth + 1)
        elif getattr(shape, "has_table", False):
            self._table(shape.table, box)
        elif getattr(shape, "has_chart", False):
            self._chart(shape, box)
        elif shape.has_text_frame:
            self._text(shape, box)
        else:
            self._diagram(shape, box)
        if box is not None:
            self._paint(shape._element, box, before)

    def _text(self, shape: Any, box: Box | None) -> None:
        from pptx.enum.shapes import PP_PLACEHOLDER as KIND

        kind = shape.placeholder_format.type if shape.is_placeholder else None
        if kind in {KIND.FOOTER, KIND.SLIDE_NUMBER, KIND.DATE, KIND.HEADER}:
            if kind in {KIND.FOOTER, KIND.HEADER}:
                self._deck.hidden.add("notes", shape.text_frame.text)
            return
        lines = self._lines(shape, box)
        place = self._deck.place(self._number, box)
        blocks: list[str] = []
        in_list = False
        for one in lines:
            text = literal(one.runs, partial(paragraph, lists=not one.bullet))
            text = self._inline.links.written(text)
            if one.bullet:
                text = f"{'    ' * one.level}{one.bullet} {' '.join(text.split())}"
            if one.bullet and in_list:
                blocks[-1] += f"\n{text}"
            else:
                blocks.append(text)
            in_list = bool(one.bullet)
        for block in blocks:
            self._writer.block(block, place)

    def _lines(self, shape: Any, box: Box | None) -> list[Line]:
        """Paragraphs of a shape without what cannot be read."""
        element = shape._element
        if is_painted(element):
            ground = painted_colour(element)
        else:
            covered = box is None or any(_overlap(box, other) for other in self._painted)
            ground = None if covered else self._ground
        lines = lines_of(shape, self._bullets, self._inline, ground)
        if box is not None and lines:
            self._written.append((box, " ".join(one.text for one in lines)))
        return lines

    def _paint(self, element: Any, box: Box, before: int) -> None:
        """Note what a shape paints; `before`: how many texts were written before it."""
        picture = element.tag == P + "pic"
        if picture or is_painted(element):
            self._painted.append(box)
        if picture or painted_colour(element):
            self._cover(box, before)

    def _cover(self, box: Box, count: int) -> None:
        """The first `count` texts are perhaps not seen if they lie under a picture or a filled
        shape; an effect may show them."""
        for other, text in self._written[:count]:
            if _holds(box, other):
                self._deck.hidden.add("invisible-style", text)

    def _table(self, table: Any, box: Box | None) -> None:
        inline = self._inline
        rows = [[_cell_runs(table, cell, inline) for cell in row.cells] for row in table.rows]
        heights = [row.height / _EMU_PER_POINT for row in table.rows]
        top = box[1] if box else 0.0
        for number, (row, height) in enumerate(zip(rows, heights, strict=True)):
            part_box = (box[0], top, box[2], top + height) if box else None
            place = self._deck.place(self._number, part_box)
            if number == 0:
                head = [plain_line(plain_text(runs)) for runs in row]
                self._writer.block(table_row(head), place)
                self._writer.add("\n" + table_rule(len(row)))
            else:
                self._writer.add("\n")
                self._writer.add(inline.links.written(styled_row(row)), place)
            top += height

    def _chart(self, shape: Any, box: Box | None) -> None:
        for block in chart_blocks(shape.chart_part._element):
            self._writer.block(block, self._deck.place(self._number, box))

    def _diagram(self, shape: Any, box: Box | None) -> None:
        """Texts of a SmartArt, as a list."""
        items = "\n".join(f"- {span(text)}" for text in _diagram_texts(shape._element, shape.part))
        self._writer.block(items, self._deck.place(self._number, box))


def _diagram_texts(element: Any, of: Any) -> list[str]:
    texts: list[str] = []
    for ids in element.iter(_DGM + "relIds"):
        target = of.related_part(ids.get(_R + "dm"))
        root = etree.fromstring(target.blob, etree.XMLParser(resolve_entities=False))
        texts += (text_of(point) for point in root.iter(_DGM + "pt"))
    return [text for text in texts if text]


def _title_of(slide: Any) -> Any | None:
    """The shape that is a title by its kind; the library wants it to have the number of one in the
    layout, too, which it loses when the layout changes."""
    from pptx.enum.shapes import PP_PLACEHOLDER as KIND

    titles = [
        shape
        for shape in slide.shapes
        if shape.is_placeholder
        and shape.placeholder_format.type in {KIND.TITLE, KIND.CENTER_TITLE, KIND.VERTICAL_TITLE}
    ]
    return next((one for one in titles if one.has_text_frame and one.text_frame.text.strip()), None)


def _visible_text(lines: list[Line]) -> str:
    return " ".join(one.text.strip() for one in lines)


def _cell_runs(table: Any, cell: Any, inline: Inline) -> Runs:
    """Of merged cells every one has the text of the first."""
    if cell.is_spanned:
        for row in table.rows:
            for other in row.cells:
                if other.is_merge_origin and _covers(table, other, cell):
                    runs = runs_of(other._tc, inline, painted_colour(other._tc, "tcPr"))
                    return runs if len(plain_text(runs)) <= LONGEST_REPEATED else []
    return runs_of(cell._tc, inline, painted_colour(cell._tc, "tcPr"))


def _covers(table: Any, origin: Any, cell: Any) -> bool:
    top, left = _position(table, origin)
    row, column = _position(table, cell)
    down, across = int(origin.span_height), int(origin.span_width)
    return top <= row < top + down and left <= column < left + across


def _position(table: Any, cell: Any) -> tuple[int, int]:
    for number, row in enumerate(table._tbl.tr_lst):
        for column, tc in enumerate(row.tc_lst):
            if tc is cell._tc:
                return number, column
    return -1, -1


# --- geometry -----------------------------------------------------------------------------------


def _box(shape: Any, frame: _Frame) -> Box | None:
    """Left, top, right, bottom in points from the slide's corner."""
    sides = (shape.left, shape.top, shape.width, shape.height)
    if any(side is None for side in sides):
        return None
    left, top, width, height = (float(side) for side in sides)
    x, y = frame.x + left * frame.across, frame.y + top * frame.down
    right, bottom = x + width * frame.across, y + height * frame.down
    return (
        x / _EMU_PER_POINT, y / _EMU_PER_POINT, right / _EMU_PER_POINT, bottom / _EMU_PER_POINT
    )  # fmt: skip


def _inner(group: Any, frame: _Frame) -> _Frame:
    """The frame for the children of a group."""
    xfrm = group._element.grpSpPr.find(A + "xfrm")
    if xfrm is None:
        return frame
    numbers = [
        [float(element.get(key) or 0) for key in keys] if element is not None else [0.0, 0.0]
        for element, keys in (
            (xfrm.find(A + "off"), ("x", "y")),
            (xfrm.find(A + "ext"), ("cx", "cy")),
            (xfrm.find(A + "chOff"), ("x", "y")),
            (xfrm.find(A + "chExt"), ("cx", "cy")),
        )
    ]
    (x, y), (width, height), (inner_x, inner_y), (inner_width, inner_height) = numbers
    across = frame.across * (width / inner_width if inner_width else 1.0)
    down = frame.down * (height / inner_height if inner_height else 1.0)
    return _Frame(
        frame.x + x * frame.across - inner_x * across,
        frame.y + y * frame.down - inner_y * down,
        across,
        down,
    )


def _holds(outer: Box, inner: Box) -> bool:
    """Whether a box lies in another, but for an edge."""
    edge = 4.0
    return (
        outer[0] <= inner[0] + edge
        and outer[1] <= inner[1] + edge
        and outer[2] >= inner[2] - edge
        and outer[3] >= inner[3] - edge
    )


def _overlap(one: Box | None, other: Box) -> bool:
    if one is None:
        return False
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
