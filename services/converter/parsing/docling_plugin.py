"""Our layout and table engines as docling plug-ins, and the PDF pipeline that they run in.

Three traps of docling 2.143: its table factory imports torchvision, which needs CUDA's torch; its
layout stage comes before OCR, so a scan has no words yet; its converter renders and sorts by rules
that are made for the models. Hence a pipeline of its own stages around docling's parser and OCR.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docling.datamodel.base_models import (
    Cluster,
    LayoutPrediction,
    Page,
    TableStructurePrediction,
)
from docling.datamodel.base_models import (
    Table as DoclingTable,
)
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import BaseLayoutOptions, BaseTableStructureOptions
from docling.models.base_layout_model import BaseLayoutModel
from docling.models.base_table_model import BaseTableStructureModel
from docling.models.stages.layout.layout_postprocessing_model import LayoutPostprocessingModel
from docling.pipeline import standard_pdf_pipeline
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline
from docling_core.types.doc.base import BoundingBox, Size
from docling_core.types.doc.common.origin import DocumentOrigin
from docling_core.types.doc.common.reference import ProvenanceItem
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.items.table.table_data import TableCell, TableData
from docling_core.types.doc.labels import DocItemLabel, GroupLabel
from docling_core.types.doc.page import BoundingRectangle, TextCell

from services.converter.parsing.layout import Block, Rule, Word, blocks_of_page
from services.converter.parsing.probe import Box, HiddenWord, Probe
from services.converter.parsing.structure import Element, structure
from services.converter.parsing.structure import Page as PageOfBlocks
from services.converter.parsing.tables import Table, table_in

_LABELS = {
    "text": DocItemLabel.TEXT,
    "contents": DocItemLabel.TEXT,
    "list": DocItemLabel.LIST_ITEM,
    "code": DocItemLabel.CODE,
    "table": DocItemLabel.TABLE,
}
_BOLD = ("bold", "black", "heavy", "semibold", "demi", "-bd", "ptmb", "phvb")
_TEX_BOLD, _TEX_ITALIC = re.compile(r"(?:cm|sf|ec|lm)\w?bx"), re.compile(r"(?:cm|sf|ec|lm)\w?ti")
_ITALIC = ("italic", "oblique", "-it", "ptmri", "slanted")
_SYMBOLS = ("symbol", "dingbat", "wingding", "webding", "zapf", "bookmaster", "sorts")
_MONO = ("mono", "courier", "consol", "cmtt", "typewriter", "menlo", "nimbusmonl")


_OCR_SCALE = 3.0
_OCR_PIXELS = 6_000_000
_ROW = 24.0
_STRAIGHT = 0.2
_MOST_WORDS = 20_000
_GLYPH_NAME = re.compile(r"[A-Z]{2}\d{4,}|GLYPH<\w+>|/?[a-z]\d{2,4}")


class HeuristicLayoutOptions(BaseLayoutOptions):
    kind: ClassVar[str] = "citelog_heuristic_layout"


class HeuristicTableOptions(BaseTableStructureOptions):
    kind: ClassVar[str] = "citelog_heuristic_table"


class BlockCluster(Cluster):
    """A docling cluster that remembers the block it was made of."""

    block: Any = None


class HeuristicLayout(BaseLayoutModel):
    """Clusters from geometry. Reading order, cells and paragraphs are final."""

    requires_layout_postprocessing = False

    def __init__(self, **_: Any) -> None:
        self.sizes: dict[int, tuple[float, float]] = {}

    @classmethod
    def get_options_type(cls) -> type[BaseLayoutOptions]:
        return HeuristicLayoutOptions

    def predict_layout(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[LayoutPrediction]:
        """One prediction a page."""
        return [self.page_prediction(page) for page in pages]

    def page_prediction(self, page: Page) -> LayoutPrediction:
        """Clusters of a page, in reading order.

        A page set sideways or upside down is turned first, boxes and all.
        """
        if page.parsed_page is None or page.size is None:
            return LayoutPrediction()
        turn = _Turn.of(page)
        self.sizes[page.page_no] = turn.size
        words = _words(page.parsed_page, turn)
        blocks = blocks_of_page(words, _rules(page, turn))
        for line in (line for block in blocks for line in block.lines):
            # A long document has millions of words; its lines are enough from here on.
            line.words = []
        return LayoutPrediction(clusters=[_cluster(n, block) for n, block in enumerate(blocks)])


class HeuristicTables(BaseTableStructureModel):
    """Cells of tables: those that our layout found already, else those within a table's box."""

    def __init__(self, enabled: bool = True, **_: Any) -> None:
        self.enabled = enabled

    @classmethod
    def get_options_type(cls) -> type[BaseTableStructureOptions]:
        return HeuristicTableOptions

    def predict_tables(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[TableStructurePrediction]:
        """Structure of the tables of each page."""
        return [_table_prediction(page) for page in pages]


class _AfterOcr(LayoutPostprocessingModel):
    """Lays out scanned pages again, now that they have words."""

    layout: HeuristicLayout

    def postprocess_layout(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[LayoutPrediction]:
        for page in pages:
            if any(cell.from_ocr for cell in page.cells):
                page.predictions.layout = self.layout.page_prediction(page)
        return super().postprocess_layout(conv_res, pages)


class _SeenOnly:
    """docling's reading of a page, without the cells that the probe knows nobody sees."""

    def __init__(self, stage: Any, probe: Probe) -> None:
        self._stage = stage
        self._hidden = {n: page.hidden for n, page in enumerate(probe.pages, 1) if page.hidden}

    def __call__(self, conv_res: ConversionResult, pages: Iterable[Page]) -> Iterable[Page]:
        for page in self._stage(conv_res, pages):
            if page.parsed_page is not None and page.page_no in self._hidden:
                unseen = _Unseen(self._hidden[page.page_no])
                parsed = page.parsed_page
                parsed.word_cells = [c for c in parsed.word_cells if not unseen.word(c)]
                parsed.textline_cells = [c for c in parsed.textline_cells if not unseen.line(c)]
            yield page


class _Unseen:
    """Hidden words of a page, found by place."""

    def __init__(self, words: Sequence[HiddenWord]) -> None:
        self._by_row: defaultdict[int, list[HiddenWord]] = defaultdict(list)
        for word in words:
            self._by_row[int((word.box.top + word.box.bottom) / 2 / _ROW)].append(word)

    def _near(self, top: float, bottom: float) -> Iterable[HiddenWord]:
        for row in range(int(top / _ROW) - 1, int(bottom / _ROW) + 2):
            yield from self._by_row.get(row, ())

    def word(self, cell: Any) -> bool:
        """A cell that lies under a hidden word and says the same."""
        box = cell.rect.to_bounding_box()
        return any(
            2 * _across(box, unseen) > box.r - box.l
            and (cell.text in unseen.text or unseen.text in cell.text)
            for unseen in self._near(box.t, box.b)
        )

    def line(self, cell: Any) -> bool:
        """A line of which hidden words are the greater part."""
        box = cell.rect.to_bounding_box()
        letters = sum(
            len(unseen.text)
            for unseen in self._near(box.t, box.b)
            if _across(box, unseen) > 0 and unseen.text in cell.text
        )
        return 2 * letters > len(cell.text.replace(" ", ""))


def _across(box: BoundingBox, unseen: HiddenWord) -> float:
    """How far both overlap from left to right; nothing if they lie in different heights."""
    if min(box.b, unseen.box.bottom) <= max(box.t, unseen.box.top):
        return 0.0
    return min(box.r, unseen.box.right) - max(box.l, unseen.box.left)


class _TextlessOnly:
    """OCR for the pages that have no text of their own."""

    def __init__(self, engine: Any, wanted: frozenset[int]) -> None:
        self._engine, self._wanted = engine, wanted

    def __call__(self, conv_res: ConversionResult, pages: Iterable[Page]) -> Iterable[Page]:
        for page in pages:
            if page.page_no in self._wanted and page.size is not None:
                area = page.size.width * page.size.height
                self._engine.scale = min(_OCR_SCALE, math.sqrt(_OCR_PIXELS / max(area, 1.0)))
                yield from self._engine(conv_res, [page])
            else:
                yield page


class _Assembly:
    """Stands where docling sorts and labels: blocks of all pages become a document."""

    def __init__(self, probe: Probe, sizes: dict[int, tuple[float, float]]) -> None:
        self._probe, self._sizes = probe, sizes

    def __call__(self, conv_res: ConversionResult, **_: Any) -> DoclingDocument:
        pages: list[PageOfBlocks] = []
        for page in sorted(conv_res.pages, key=lambda p: p.page_no):
            if page.assembled is not None and page.size is not None:
                clusters = (e.cluster for e in page.assembled.elements)
                blocks = [c.block for c in clusters if isinstance(c, BlockCluster)]
                pages.append(PageOfBlocks(page.page_no, page.size.width, page.size.height, blocks))
        document = DoclingDocument(name="document", origin=_origin(conv_res))
        for item in pages:
            document.add_page(page_no=item.number, size=Size(width=item.width, height=item.height))
        _fill(document, structure(pages, self._probe.outline))
        return document


class ProbedPdfPipeline(StandardPdfPipeline):
    """docling's pipeline, told by our probe what nobody sees.

    Set `probe` and `ocr_pages` before a conversion; one conversion at a time.
    """

    probe: ClassVar[Probe]
    ocr_pages: ClassVar[frozenset[int]]

    def _init_models(self) -> None:
        super()._init_models()
        self._reading: Any = self.preprocessing_model

    def _build_document(self, conv_res: ConversionResult) -> ConversionResult:
        seen: Any = _SeenOnly(self._reading, self.probe)
        self.preprocessing_model = seen
        return super()._build_document(conv_res)


class HeuristicPdfPipeline(ProbedPdfPipeline):
    """With our layout, tables and assembly in place of docling's."""

    def _init_models(self) -> None:
        super()._init_models()
        layout: Any = self.layout_model
        self.layout_postprocessing_model = _AfterOcr(
            options=self.layout_postprocessing_model.options
        )
        self.layout_postprocessing_model.layout = layout
        self._ocr_engine = self.ocr_model
        # Full-page OCR must not stop docling from reading the text of the other pages.
        self._reading.options.skip_cell_extraction = False

    def _build_document(self, conv_res: ConversionResult) -> ConversionResult:
        layout: Any = self.layout_model
        layout.sizes = {}
        self.ocr_model = _TextlessOnly(self._ocr_engine, self.ocr_pages)
        assembly: Any = _Assembly(self.probe, layout.sizes)
        self.reading_order_model = assembly
        return super()._build_document(conv_res)


def register(*, tables: bool) -> None:
    """Make the engines known to docling's factories.

    Args:
        tables: hide docling's own table engine, which needs torchvision, behind ours.
    """
    from docling.models.factories import get_layout_factory
    from docling.models.factories.table_factory import TableStructureFactory

    if tables:
        pipeline: Any = standard_pdf_pipeline
        factory: Any = TableStructureFactory
        only_ours = factory()
        only_ours.register(HeuristicTables, "citelog", __name__)
        pipeline.get_table_structure_factory = lambda allow_external_plugins=False: only_ours
    layouts = get_layout_factory(allow_external_plugins=False)
    if HeuristicLayoutOptions not in layouts.classes:
        layouts.register(HeuristicLayout, "citelog", __name__)


# --- from docling to us -----------------------------------------------------------------------


class _Turn:
    """How a page must be turned for its text to stand upright: quarter turns clockwise."""

    def __init__(self, quarters: int, width: float, height: float) -> None:
        self.quarters, self._width, self._height = quarters, width, height
        self.size = (height, width) if quarters % 2 else (width, height)

    @classmethod
    def of(cls, page: Page) -> "_Turn":
        """By the direction in which most of the page's text runs."""
        weights = [0, 0, 0, 0]
        for cell in page.cells:
            weights[round(cell.rect.angle / (math.pi / 2)) % 4] += len(cell.text)
        quarters = weights.index(max(weights)) if 2 * max(weights) > sum(weights) else 0
        size = page.size
        return cls(quarters, size.width if size else 0.0, size.height if size else 0.0)

    def box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box on the turned page."""
        width, height = self._width, self._height
        match self.quarters:
            case 1:
                return Box(height - bottom, left, height - top, right)
            case 2:
                return Box(width - right, height - bottom, width - left, height - top)
            case 3:
                return Box(top, width - right, bottom, width - left)
        return Box(left, top, right, bottom)


def _words(parsed: Any, turn: _Turn) -> list[Word]:
    """Words of a page; on a scan those that OCR read."""
    scanned = any(cell.from_ocr for cell in parsed.textline_cells)
    cells = parsed.textline_cells if scanned else parsed.word_cells
    words: list[Word] = []
    for cell in cells[:_MOST_WORDS]:
        word = _word(cell)
        if word is not None:
            word.left, word.top, word.right, word.bottom = turn.box(
                word.left, word.top, word.right, word.bottom
            )
            angle = (cell.rect.angle - turn.quarters * math.pi / 2) % math.pi
            word.upright = min(angle, math.pi - angle) < _STRAIGHT
            word.size = word.bottom - word.top if word.upright else word.right - word.left
            words.append(word)
    if scanned:
        _even_sizes(words)
    return words


def _word(cell: Any) -> Word | None:
    """None for what cannot be read: glyphs without a character, and slanted text."""
    box = cell.rect.to_bounding_box()
    text = cell.text.strip()
    font = str(getattr(cell, "font_name", "")).lower()
    if any(mark in font for mark in _SYMBOLS) and (len(text) == 1 or _GLYPH_NAME.fullmatch(text)):
        text = "•"
    unreadable = text.count("\ufffd") * 3 > len(text)
    slant = cell.rect.angle % (math.pi / 2)
    if not text or unreadable or min(slant, math.pi / 2 - slant) > _STRAIGHT:
        return None
    if box.r <= box.l or box.b <= box.t:
        return None
    return Word(
        text, box.l, box.t, box.r, box.b,
        size=box.b - box.t,
        bold=any(mark in font for mark in _BOLD) or _TEX_BOLD.search(font) is not None,
        italic=any(mark in font for mark in _ITALIC) or _TEX_ITALIC.search(font) is not None,
        mono=any(mark in font for mark in _MONO),
    )  # fmt: skip


def _even_sizes(words: Sequence[Word]) -> None:
    """Boxes that OCR draws are as high as their letters: a line's tallest speak for the line."""
    line: list[Word] = []
    for word in [*sorted(words, key=lambda w: w.top + w.bottom), None]:
        if line and (word is None or word.middle > line[0].bottom):
            heights = sorted(w.bottom - w.top for w in line)
            size = float(round(heights[int(0.8 * (len(heights) - 1))] * 1.15))
            for one in line:
                one.size = size
            line = []
        if word is not None:
            line.append(word)


def _rules(page: Page, turn: _Turn) -> list[Rule]:
    backend = page._backend
    lines = backend.get_shape_lines() if backend is not None else None
    return [Rule(*turn.box(b.l, b.t, b.r, b.b)) for b in lines or ()]


def _cluster(number: int, block: Block) -> BlockCluster:
    cells = [
        TextCell(
            index=index,
            rect=BoundingRectangle.from_bounding_box(_box(line)),
            text=line.text,
            orig=line.text,
            from_ocr=False,
        )
        for index, line in enumerate(block.lines)
    ]
    return BlockCluster(
        id=number, label=_LABELS[block.kind], bbox=_box(block), cells=cells, block=block
    )


def _box(thing: Any) -> BoundingBox:
    return BoundingBox(l=thing.left, t=thing.top, r=thing.right, b=thing.bottom)


# --- from us to docling -----------------------------------------------------------------------


def _table_prediction(page: Page) -> TableStructurePrediction:
    tables: dict[int, DoclingTable] = {}
    clusters = page.predictions.layout.clusters if page.predictions.layout else []
    for cluster in clusters:
        table = _table_of(cluster, page)
        if table is not None:
            data = _table_data(table)
            tables[cluster.id] = DoclingTable(
                label=DocItemLabel.TABLE, id=cluster.id, page_no=page.page_no, cluster=cluster,
                otsl_seq=[], num_rows=data.num_rows, num_cols=data.num_cols,
                table_cells=data.table_cells,
            )  # fmt: skip
    return TableStructurePrediction(table_map=tables)


def _table_of(cluster: Cluster, page: Page) -> Table | None:
    if isinstance(cluster, BlockCluster):
        found: Table | None = cluster.block.table
        return found
    if cluster.label not in {DocItemLabel.TABLE, DocItemLabel.DOCUMENT_INDEX}:
        return None
    box, turn = cluster.bbox, _Turn(0, 0, 0)
    words = [
        word
        for word in _words(page.parsed_page, turn)
        if box.l <= (word.left + word.right) / 2 <= box.r and box.t <= word.middle <= box.b
    ]
    rules = [r for r in _rules(page, turn) if r.left >= box.l - 5 and r.right <= box.r + 5]
    return table_in(words, rules)


def _table_data(table: Table) -> TableData:
    cells = [
        TableCell(
            text=cell.text, row_span=cell.row_span, col_span=cell.column_span,
            start_row_offset_idx=cell.row, end_row_offset_idx=cell.row + cell.row_span,
            start_col_offset_idx=cell.column, end_col_offset_idx=cell.column + cell.column_span,
            column_header=cell.row == 0,
        )
        for cell in table.cells
    ]  # fmt: skip
    return TableData(table_cells=cells, num_rows=table.rows, num_cols=table.columns)


def _origin(conv_res: ConversionResult) -> DocumentOrigin:
    return DocumentOrigin(
        mimetype="application/pdf", binary_hash=0, filename=Path(conv_res.input.file).name
    )


def _fill(document: DoclingDocument, elements: Sequence[Element]) -> None:
    group: Any = None
    for element in elements:
        place = ProvenanceItem(
            page_no=element.page, bbox=_box(element.block), charspan=(0, len(element.text))
        )
        if element.kind != "list":
            group = None
        match element.kind:
            case "title":
                document.add_title(text=element.text, prov=place)
            case "heading":
                document.add_heading(text=element.text, level=element.level, prov=place)
            case "list":
                if group is None:
                    group = document.add_group(label=GroupLabel.LIST, name="list")
                document.add_list_item(
                    text=element.text, marker=element.marker, parent=group, prov=place,
                    enumerated=element.marker != "-",
                )  # fmt: skip
            case "table" if element.table is not None:
                document.add_table(data=_table_data(element.table), prov=place)
            case "code":
                document.add_code(text=element.text, prov=place)
            case _:
                document.add_text(label=DocItemLabel.TEXT, text=element.text, prov=place)
