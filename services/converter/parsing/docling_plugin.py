"""Our layout and table engines as docling plug-ins, and the PDF pipeline that they run in.

Two traps of docling 2.143: its table factory imports torchvision, which needs CUDA's torch; its
converter renders and sorts by rules that are made for the models. Hence a pipeline of our own
stages around docling's parser. Scans are read by `ocr.py` before a pipeline runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
from docling.pipeline import standard_pdf_pipeline
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline
from docling_core.types.doc.base import BoundingBox
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.labels import DocItemLabel
from docling_core.types.doc.page import BoundingRectangle, TextCell

from services.converter.parsing.layout import Block, blocks_of_page
from services.converter.parsing.layout import Page as PageOfBlocks
from services.converter.parsing.ocr import Scan
from services.converter.parsing.pdf_assembly import UPRIGHT, box_of, documents_of, table_data
from services.converter.parsing.pdf_glyphs import Box, Type
from services.converter.parsing.pdf_table import Table
from services.converter.parsing.pdf_words import Turn, fields_of, rules_of, words_of
from services.converter.parsing.probe import HiddenWord, PageProbe, Probe
from services.converter.parsing.structure import structure
from services.converter.parsing.tables import table_in
from services.converter.parsing.upright import Straight

_LABELS = {
    "text": DocItemLabel.TEXT,
    "contents": DocItemLabel.TEXT,
    "figure": DocItemLabel.TEXT,
    "list": DocItemLabel.LIST_ITEM,
    "code": DocItemLabel.CODE,
    "table": DocItemLabel.TABLE,
}


_ROW = 24.0


class HeuristicLayoutOptions(BaseLayoutOptions, hide_input_in_errors=True):
    kind: ClassVar[str] = "citelog_heuristic_layout"


class HeuristicTableOptions(BaseTableStructureOptions, hide_input_in_errors=True):
    kind: ClassVar[str] = "citelog_heuristic_table"


class BlockCluster(Cluster, hide_input_in_errors=True):
    """A docling cluster that remembers the block it was made of."""

    block: Any = None


class HeuristicLayout(BaseLayoutModel):
    """Clusters from geometry. Reading order, cells and paragraphs are final."""

    requires_layout_postprocessing = False

    def __init__(self, **_: Any) -> None:
        self.turns: dict[int, Straight] = {}
        self.probe: Probe | None = None

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
        turn = Turn.of(page)
        self.turns[page.page_no] = turn
        known = self.probe.pages[page.page_no - 1] if self.probe else PageProbe(0, 0)
        words = words_of(page.parsed_page, turn, known.type)
        fields = fields_of(known.beside.fields, turn)
        figures = [turn.box(*box) for box in known.drawings.figures]
        rules = rules_of(known.drawings.rules, turn)
        blocks = blocks_of_page(words, rules, fields=fields, figures=figures)
        for block in blocks:
            block.settle()
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


class _Read:
    """In the place of docling's OCR: gives the pages that we read the words found on them."""

    def __init__(self, scans: dict[int, Scan]) -> None:
        self._scans = scans

    def __call__(self, conv_res: ConversionResult, pages: Iterable[Page]) -> Iterable[Page]:
        for page in pages:
            scan = self._scans.get(page.page_no)
            if scan is not None and page.parsed_page is not None:
                page.parsed_page.word_cells = []
                page.parsed_page.textline_cells = _cells(scan)
            yield page


def _cells(scan: Scan) -> list[TextCell]:
    """Words where they lie on the page as it is shown."""
    boxes = (scan.frame.back(Box(w.left, w.top, w.right, w.bottom)) for w in scan.words)
    return [
        TextCell(
            index=index, rect=BoundingRectangle.from_bounding_box(box_of(box)),
            text=word.text, orig=word.text, from_ocr=True,
        )
        for index, (word, box) in enumerate(zip(scan.words, boxes, strict=True))
    ]  # fmt: skip


class _Collection:
    """Stands where docling sorts and labels: keeps the blocks of the pages for later."""

    def __init__(self, found: "Blocks") -> None:
        self._found = found

    def __call__(self, conv_res: ConversionResult, **_: Any) -> DoclingDocument:
        for page in conv_res.pages:
            if page.assembled is not None and page.size is not None:
                clusters = (e.cluster for e in page.assembled.elements)
                blocks = [c.block for c in clusters if isinstance(c, BlockCluster)]
                self._found.pages[page.page_no] = PageOfBlocks(
                    page.page_no, page.size.width, page.size.height, blocks
                )
        return DoclingDocument(name="document")


@dataclass
class Blocks:
    """Pages by number as the heuristic pipeline read them, and how each was turned for it."""

    pages: dict[int, PageOfBlocks] = field(default_factory=dict)
    turns: dict[int, Straight] = field(default_factory=dict)

    def documents(self, probe: Probe) -> Iterator[DoclingDocument]:
        """All pages, as one document after the other; the blocks are let go."""
        pages = [self.pages[number] for number in sorted(self.pages)]
        self.pages.clear()
        return documents_of(structure(pages, probe.outline), pages, self.turns)


class ProbedPdfPipeline(StandardPdfPipeline):
    """docling's pipeline, told by our probe what nobody sees.

    Set `probe` and `scans`, the pages read by OCR, before a conversion; one at a time in a process.
    """

    probe: ClassVar[Probe]
    scans: ClassVar[dict[int, Scan]]

    def _init_models(self) -> None:
        super()._init_models()
        self._reading: Any = self.preprocessing_model

    def _build_document(self, conv_res: ConversionResult) -> ConversionResult:
        seen: Any = _SeenOnly(self._reading, self.probe)
        self.preprocessing_model = seen
        self.ocr_model = _Read(self.scans)
        return super()._build_document(conv_res)


class HeuristicPdfPipeline(ProbedPdfPipeline):
    """With our layout and tables in place of docling's. Its pages are added to `blocks`."""

    blocks: ClassVar[Blocks]

    def _build_document(self, conv_res: ConversionResult) -> ConversionResult:
        layout: Any = self.layout_model
        layout.turns, layout.probe = self.blocks.turns, self.probe
        collection: Any = _Collection(self.blocks)
        self.reading_order_model = collection
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


# --- clusters and tables -------------------------------------------------------------------------


def _cluster(number: int, block: Block) -> BlockCluster:
    return BlockCluster(id=number, label=_LABELS[block.kind], bbox=box_of(block), block=block)


def _table_prediction(page: Page) -> TableStructurePrediction:
    tables: dict[int, DoclingTable] = {}
    clusters = page.predictions.layout.clusters if page.predictions.layout else []
    for cluster in clusters:
        table = _table_of(cluster, page)
        if table is not None:
            data = table_data(table, lambda _: UPRIGHT)
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
    box, turn = cluster.bbox, UPRIGHT
    words = [
        word
        for word in words_of(page.parsed_page, turn, Type(()))
        if box.l <= (word.left + word.right) / 2 <= box.r and box.t <= word.middle <= box.b
    ]
    backend = page._backend
    lines = backend.get_shape_lines() if backend is not None else None
    rules = rules_of((Box(b.l, b.t, b.r, b.b) for b in lines or ()), turn)
    rules = [rule for rule in rules if rule.left >= box.l - 5 and rule.right <= box.r + 5]
    return table_in(words, rules)
