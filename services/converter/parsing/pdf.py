"""PDF by docling: with its models where they are on the machine, with our heuristics elsewhere."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import PDF
from services.converter.memory import give_back, says_short
from services.converter.parsers import has_table_models
from services.converter.parsing.alignment import squeezed
from services.converter.parsing.hidden import in_parts
from services.converter.parsing.ocr import Scan, told_engines
from services.converter.parsing.ocr_text import GOOD
from services.converter.parsing.pdf_beside import said_beside
from services.converter.parsing.pdf_marked import as_drawn
from services.converter.parsing.pdf_places import written
from services.converter.parsing.pdf_repair import openable, same_pages
from services.converter.parsing.pdf_streams import torn_pages
from services.converter.parsing.probe import PageProbe, Probe, probe
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.scans import ReadPages, page_of, read_pages
from services.converter.progress import finished_part
from services.converter.settings import ParseOptions

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument

_FEW_LETTERS = 12
_LEAST_READ = 3
"""Letters that OCR must find in a document: one or two are a speck or an edge."""
_LARGE_PICTURE, _MOST_STAMPED, _LITTLE_COVERED, _MUCH_MORE = 0.5, 400, 0.04, 2
_SLICE = 100
_MOST_RETRIES = 40


def parse_pdf(path: Path, options: ParseOptions) -> Parse:
    """A PDF; pages without text are read by OCR.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `too-many-pages`, `no-text`,
            `parse-timeout`.
    """
    with openable(path, options.max_pages) as (whole, damaged), as_drawn(whole) as (shown, marks):
        return _parse(shown, damaged, marks, options)


def _parse(
    path: Path, damaged: frozenset[int] | None, marks: list[str], options: ParseOptions
) -> Parse:
    """`damaged`: of a file that was put together anew, pages that are gone or not whole; `marks`:
    what marks in its content say."""
    found = probe(path, options)
    textless = _textless(found)
    garbled = {number: page.broken for number, page in enumerate(found.pages, 1) if page.broken}
    stamped = _stamped(found) - textless - garbled.keys()
    numbers = sorted(textless.union(garbled, stamped)) if options.ocr else []
    scans, slow = read_pages(path, numbers, options) if numbers else ReadPages({}, frozenset())
    scans = {n: scan for n, scan in scans.items() if n not in stamped or _says_more(found, scan)}
    stamped = stamped & scans.keys()
    with same_pages(path, [(page.width, page.height) for page in found.pages]) as readable:
        documents, missing = _convert(readable, found, scans, options)
        if readable != path:
            missing |= {number for number, page in enumerate(found.pages, 1) if page.width <= 0}
    torn = torn_pages(path, len(found.pages))
    missing |= slow | torn | (damaged or frozenset())
    markdown, spans = written(documents)
    warnings = _losses(missing, damaged, torn, slow)
    told = f"pages without text {_ranges(textless)}: {told_engines(options)}"
    least = 1 if any(page.letters for page in found.pages) or not scans else _LEAST_READ
    if sum(map(str.isalnum, markdown)) < least:
        if damaged or torn:
            raise Refusal("corrupt-document", "the file is damaged, and no text is left in it")
        if slow:
            raise Refusal("parse-timeout", f"no page could be read by OCR in time; {told}")
        raise Refusal("no-text", "no page has text" + (f"; {told}" if textless else ""))
    if textless:
        warnings.append(told)
    if stamped:
        pages = _ranges(stamped)
        warnings.append(f"pages with a line of text on a scan {pages}: {told_engines(options)}")
    for reason in dict.fromkeys(garbled.values()):
        pages = _ranges(frozenset(n for n, why in garbled.items() if why == reason))
        warnings.append(
            f"pages whose text layer is broken {pages} ({reason}): {told_engines(options)}"
        )
    meta = BodyMeta(
        title=told_title(line(found.info.get("Title"))),
        language=UNKNOWN,
        media_type=PDF,
        author=line(found.info.get("Author")) or None,
        date=_date(found.info.get("CreationDate", "")),
        pages=len(found.pages),
    )
    # Most marks say what is drawn.
    shown = squeezed(markdown) if marks else ""
    aside = [
        HiddenText(kind="alt-text", text=part)
        for text in marks
        if squeezed(text) not in shown
        for part in in_parts(text)
    ]
    hidden = tuple(dict.fromkeys([*_hidden(found), *aside, *said_beside(path)]))
    document = ParsedDocument(markdown=markdown, hidden=hidden, meta=meta, spans=spans)
    return Parse(
        document, warnings,
        missing_pages=tuple(sorted(missing)),
        readings=tuple(scan.reading for _, scan in sorted(scans.items())),
    )  # fmt: skip


def _losses(
    missing: frozenset[int],
    damaged: frozenset[int] | None,
    torn: frozenset[int],
    slow: frozenset[int],
) -> list[str]:
    """What is told of pages that are `missing`, and why they are."""
    told = [f"pages that could not be read: {_ranges(missing)}"] if missing else []
    if damaged is not None:
        pages = (
            f"pages that are gone or not whole: {_ranges(damaged)}" if damaged else "no page lost"
        )
        told.append(f"the file is damaged and was put together anew; {pages}")
    if torn:
        told.append(f"pages whose content is damaged, in part or whole: {_ranges(torn)}")
    if slow:
        told.append(f"pages that took OCR too long: {_ranges(slow)}")
    return told


def _textless(found: Probe) -> frozenset[int]:
    """Numbers of the pages that show something but have next to no text."""
    return frozenset(
        number
        for number, page in enumerate(found.pages, 1)
        if page.letters < _FEW_LETTERS and (page.pictures > 0.05 or page.drawn)
    )


def _stamped(found: Probe) -> frozenset[int]:
    """Pages with no more text than a head, a number or a stamp, on a picture that may hold text."""
    return frozenset(
        number
        for number, page in enumerate(found.pages, 1)
        if page.pictures > _LARGE_PICTURE
        and page.letters < _MOST_STAMPED
        and page.covered < _LITTLE_COVERED
    )


def _says_more(found: Probe, scan: Scan) -> bool:
    """Whether the picture holds the text of the page: much more than its text layer.

    A cover over a photograph keeps its text layer, which is right to the letter.
    """
    letters = sum(sum(map(str.isalnum, word.text)) for word in scan.words)
    reading = scan.reading
    layer = found.pages[reading.page - 1].letters
    believed = reading.scores[reading.engine] >= GOOD
    return believed and letters > _MUCH_MORE * layer + _FEW_LETTERS


def _ranges(numbers: frozenset[int]) -> str:
    """`1-3, 7`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans[:20])


def _hidden(found: Probe) -> list[HiddenText]:
    """Hidden words, those that follow one another as one text; notes; the document's properties."""
    texts: list[HiddenText] = []
    for page in found.pages:
        texts += [*_hidden_of_page(page), *page.doubtful]
        texts += [HiddenText(kind="comment", text=note) for note in page.beside.notes]
        texts += [HiddenText(kind="invisible-style", text=value) for value in page.beside.unseen]
        texts += [HiddenText(kind="attribute", text=value) for value in page.beside.tips]
    values = (
        line(value) for key, value in found.info.items() if key not in {"CreationDate", "ModDate"}
    )
    return list(
        dict.fromkeys([*texts, *(HiddenText(kind="metadata", text=v) for v in values if v)])
    )


def _hidden_of_page(page: PageProbe) -> list[HiddenText]:
    texts: list[HiddenText] = []
    for word in page.hidden:
        if texts and texts[-1].kind == word.kind:
            texts[-1] = HiddenText(kind=word.kind, text=f"{texts[-1].text} {word.text}")
        else:
            texts.append(HiddenText(kind=word.kind, text=word.text))
    return texts


def _date(value: str) -> str | None:
    """`D:20240131…` as `2024-01-31`."""
    match = re.match(r"D?:?(\d{4})(\d\d)?(\d\d)?", value)
    return "-".join(part for part in match.groups() if part) if match else None


def _convert(
    path: Path, found: Probe, scans: dict[int, Scan], options: ParseOptions
) -> tuple[Iterable["DoclingDocument"], frozenset[int]]:
    """The document in parts, and the numbers of the pages that could not be read.

    Pages are read in slices, so that memory does not grow with their number. What a slice lost is
    read again page by page: one bad page must not cost its neighbours.
    """
    from services.converter.parsing.docling_plugin import Blocks, HeuristicPdfPipeline

    HeuristicPdfPipeline.blocks = blocks = Blocks()
    documents: list[DoclingDocument] = []
    pages = len(found.pages)
    lost: set[int] = set()
    retries = _MOST_RETRIES
    for first in range(1, pages + 1, _SLICE):
        wanted = range(first, min(first + _SLICE, pages + 1))
        document, read = _convert_slice(path, found, scans, options, wanted)
        documents.append(document)
        finished_part()
        for number in sorted(set(wanted) - read)[:retries]:
            retries -= 1
            document, again = _convert_slice(path, found, scans, options, range(number, number + 1))
            documents.append(document)
            read |= again
        lost |= set(wanted) - read
        for number in wanted:
            found.pages[number - 1].settle()
        give_back()
    if options.artifacts is None:
        # What was read from a picture needs nothing of docling.
        lost -= scans.keys()
        blocks.pages.update((n, page_of(scan)) for n, scan in scans.items())
        blocks.turns.update((n, scan.frame) for n, scan in scans.items())
    if len(lost) == pages:
        raise Refusal("corrupt-document", "the PDF cannot be read")
    if options.artifacts is None:
        return blocks.documents(found), frozenset(lost)
    return documents, frozenset(lost)


def _convert_slice(
    path: Path, found: Probe, scans: dict[int, Scan], options: ParseOptions, wanted: range
) -> tuple["DoclingDocument", set[int]]:
    """A document of the `wanted` pages, and the numbers of those that were read."""
    from docling.exceptions import ConversionError

    from services.converter.parsing.docling_plugin import ProbedPdfPipeline

    ProbedPdfPipeline.probe = found
    ProbedPdfPipeline.scans = scans if options.artifacts else {}
    converter = _converter(options.artifacts)
    span = (wanted.start, wanted.stop - 1)
    try:
        result = converter.convert(path, raises_on_error=False, page_range=span)
    except ConversionError as error:
        raise Refusal("corrupt-document", "the PDF cannot be read") from error
    if any(says_short(error.error_message) for error in result.errors):
        # docling would leave out the page and go on; a document with holes helps nobody.
        raise MemoryError
    read = {page.page_no for page in result.pages if page.assembled is not None}
    return result.document, read


@lru_cache(maxsize=2)
def _converter(artifacts: Path | None) -> Any:
    """A converter; building one loads the models, so it is kept."""
    from docling.datamodel.accelerator_options import AcceleratorDevice, AcceleratorOptions
    from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import HeadingHierarchyOptions, PdfPipelineOptions
    from docling.document_converter import DocumentConverter, PdfFormatOption

    from services.converter.parsing import docling_plugin as plugin

    pipeline = PdfPipelineOptions(
        do_ocr=False,
        accelerator_options=AcceleratorOptions(num_threads=2, device=AcceleratorDevice.CPU),
        queue_max_size=2,
        layout_batch_size=1,
        ocr_batch_size=1,
        table_batch_size=1,
    )
    table_models = artifacts is not None and has_table_models()
    plugin.register(tables=not table_models)
    if not table_models:
        pipeline.table_structure_options = plugin.HeuristicTableOptions()
    if artifacts is None:
        pipeline.layout_options = plugin.HeuristicLayoutOptions()
        kind: type[plugin.ProbedPdfPipeline] = plugin.HeuristicPdfPipeline
    else:
        kind = plugin.ProbedPdfPipeline
        pipeline.artifacts_path = artifacts
        pipeline.heading_hierarchy_options = HeadingHierarchyOptions(enabled=True)
        # The levels are told from the type that the parsed pages show.
        pipeline.generate_parsed_pages = True
    option = PdfFormatOption(pipeline_cls=kind, pipeline_options=pipeline)
    # The parser must not run far ahead of us: each page that it holds takes megabytes.
    option.backend_options = ThreadedDoclingParseBackendOptions.model_validate(
        {
            "parser_threads": 1,
            "max_concurrent_results": 4,
            "release_native_memory_every_n_pages": 16,
        }
    )
    return DocumentConverter(
        allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: option}
    )
