"""DOCX by docling, after hidden text was taken out of the markup."""

import io
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lxml import etree

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import DOCX
from services.converter.parsing.archive import Archive
from services.converter.parsing.embedded import embedded_files
from services.converter.parsing.literal import span
from services.converter.parsing.looks import resolved
from services.converter.parsing.markdown import to_markdown
from services.converter.parsing.marks import Marks
from services.converter.parsing.office import (
    addresses,
    part,
    properties,
    relations,
    side_part,
    whole_copy,
)
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.word_beside import said_beside
from services.converter.parsing.word_chunks import unfold, unfold_diagrams
from services.converter.parsing.word_numbers import name_headings, write_labels
from services.converter.parsing.word_symbols import name_symbols
from services.converter.parsing.word_wrappers import (
    anchor_links,
    complete_tables,
    link_fields,
    open_wrappers,
    write_cell_links,
)
from services.converter.parsing.wordml import (
    Styles,
    W,
    clean,
    clean_part,
    in_code,
    notes,
    parse_xml,
    plain_styles,
    take_alt_texts,
    text_of,
    value,
)
from services.converter.parsing.xml_paths import Paths
from services.converter.settings import ParseOptions

_DOCUMENT, _NOTES, _STYLES = "word/document.xml", "word/footnotes.xml", "word/styles.xml"
_RELATIONS = "word/_rels/document.xml.rels"
_HYPERLINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_NEEDED = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|word/_rels/document\.xml\.rels"
    r"|word/(?:document|styles|numbering|footnotes|endnotes)\.xml"
)
"""Parts that hold text, or without which it would be another."""

_BESIDE = frozenset({"header", "footer", "comments"})
_BESIDE_NAME = re.compile(r"word/(?:comments\w*|(?:header|footer)\d*)\.xml")
_DAMAGE = (etree.LxmlError, KeyError, ValueError, AttributeError, IndexError, TypeError)
_TICKS = "☐☑☒ \t\n\xa0"
_ITEM = re.compile(r"( *)(?:[-*+]|\d{1,9}[.)]) ")
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r":?-+:?")
_LEAD = re.compile(rf"[{_TICKS}]*")
_PLACES = frozenset({W + "p", W + "tr"})


def parse_docx(path: Path, options: ParseOptions) -> Parse:
    """A Word document: headings, lists, tables, footnotes; comments and deletions as hidden text.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `empty-document`.
    """
    with Archive(path, options) as archive:
        if _DOCUMENT not in archive.names:
            raise archive.lack("the document itself")
        root = parse_xml(archive.read(_DOCUMENT))
        said = said_beside(root, archive)
        styles = part(archive, _STYLES)
        name_headings(styles)
        paths = Paths(root, _PLACES)
        name_symbols(root)
        taken = open_wrappers(root)
        complete_tables(root)
        outside = addresses(archive, _DOCUMENT)
        links = anchor_links(root, outside)
        links |= link_fields(root) if _RELATIONS in archive.names else {}
        chunks = _unfold_chunks(archive, root, styles)
        write_labels(root, styles, part(archive, "word/numbering.xml"))
        known, footnotes = Styles(styles), dict[str, str]()
        hidden = [*said, *taken]
        for name in ("footnote", "endnote"):
            beside = part(archive, _named(archive, f"{name}s"))
            if beside is not None:
                name_symbols(beside)
                hidden += open_wrappers(beside)
                hidden += clean_part(beside, known)
                footnotes |= notes(beside, name)
        hidden += clean(root, known, footnotes)
        plain_styles(styles)
        hidden += _side_parts(archive)
        facts = properties(archive)
        files = embedded_files(archive)
        write_cell_links(root, outside | links)
        marks = Marks()
        _mark(root, paths, chunks, marks)
        changed = {_DOCUMENT: root} if styles is None else {_DOCUMENT: root, _STYLES: styles}
        if _RELATIONS in archive.names:
            changed[_RELATIONS] = _with_links(part(archive, _RELATIONS), links)
        content = whole_copy(
            archive,
            {
                name: etree.tostring(tree, xml_declaration=True, encoding="UTF-8")
                for name, tree in changed.items()
            },
            _NEEDED,
        )
        warnings = archive.warnings
    # Docling makes a tree of its own, as large as this one.
    del root, paths, chunks, known, changed
    markdown, spans = marks.resolve(resolved(_convert(content)))
    if not markdown.strip():
        markdown, spans = "".join(f"- {span(file.name)}\n" for file in files), ()
    if not markdown.strip():
        raise Refusal("empty-document", "the document has no visible text")
    hidden += [HiddenText(kind="metadata", text=text) for text in facts.values()]
    meta = BodyMeta(
        title=told_title(line(facts.get("title"))),
        language=UNKNOWN,
        media_type=DOCX,
        author=line(facts.get("creator")) or None,
        date=facts.get("created"),
    )
    document = ParsedDocument(
        markdown=markdown, hidden=tuple(dict.fromkeys(hidden)), meta=meta, spans=spans
    )
    return Parse(document, warnings, files=tuple(files))


def _with_links(relations: Any, links: dict[str, str]) -> Any:
    """The relations of the document, and those of links that were fields; docling would give up
    at an address that is none."""
    for key, address in links.items():
        etree.SubElement(
            relations, _RELATION, Id=key, Type=_HYPERLINK, Target=address,
            TargetMode="External",
        )  # fmt: skip
    for relation in relations:
        try:
            urlsplit(relation.get("Target") or "")
        except ValueError:
            relation.set("Target", "#")
    return relations


def _mark(root: Any, paths: Paths, chunks: dict[Any, str], marks: Marks) -> None:
    """Put the mark of its place around the text of every paragraph; in tables of the row."""
    ends: dict[Any, Any] = {}
    for paragraph in root.iter(W + "p"):
        texts = [
            t for t in paragraph.iter(W + "t") if _is_word(t) and _paragraph_of(t) is paragraph
        ]
        if not texts or in_code(paragraph):
            continue
        unit = next(iter(list(paragraph.iterancestors(W + "tr"))[-1:]), paragraph)
        path = paths.of(unit)
        place = (
            Place(part=_DOCUMENT, path=path) if path else Place(part=chunks.get(paragraph, _NOTES))
        )
        # Blanks stay at the edge, where docling takes them off.
        lead = _LEAD.match(texts[0].text)
        texts[0].text = _put(texts[0].text, lead.end() if lead else 0, marks.mark(place))
        ends[unit] = texts[-1]
    for last in ends.values():
        last.text = _put(last.text, len(last.text.rstrip()), Marks.END)


def _put(text: str, at: int, mark: str) -> str:
    return text[:at] + mark + text[at:]


def _is_word(text: Any) -> bool:
    """Not blank, nor a box to tick, by which docling knows a form."""
    return bool(text.text and text.text.strip(_TICKS))


def _paragraph_of(text: Any) -> Any:
    return next(text.iterancestors(W + "p"))


def _named(archive: Archive, kind: str) -> str:
    """The part of notes, whatever its name."""
    told = (one.target for one in relations(archive, _DOCUMENT) if one.kind == kind)
    return next((name for name in told if name in archive.names), f"word/{kind}.xml")


def _side_parts(archive: Archive) -> list[HiddenText]:
    """Comments; and heads and feet, which repeat on every page and are not part of the text.

    By their content: the part may have any name.
    """
    hidden: list[HiddenText] = []
    related = {r.target for r in relations(archive, _DOCUMENT) if r.kind in _BESIDE}
    for name in sorted(archive.names):
        root = side_part(archive, name) if name in related or _BESIDE_NAME.fullmatch(name) else None
        if root is None:
            continue
        if root.tag.endswith("}comments"):
            hidden += [HiddenText(kind="comment", text=t) for c in root if (t := text_of(c))]
        elif root.tag.endswith(("}hdr", "}ftr")):
            text = text_of(root)
            hidden += [HiddenText(kind="notes", text=text)] if text else []
        take_alt_texts(root, hidden)
    return hidden


def _unfold_chunks(archive: Archive, root: Any, styles: Any | None) -> dict[Any, str]:
    targets = {r.id: r.target for r in relations(archive, _DOCUMENT)}
    headings: dict[int, str] = {}
    for style in () if styles is None else styles.iter(W + "style"):
        match = re.fullmatch(r"heading (\d)", value(style, "name") or "", re.IGNORECASE)
        if match:
            headings.setdefault(int(match[1]), style.get(W + "styleId") or "")

    def read(key: str) -> tuple[str, bytes]:
        return targets.get(key, ""), archive.read(targets.get(key, ""))

    return unfold(root, read, headings) | unfold_diagrams(root, read)


@cache
def _converter() -> Any:
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, WordFormatOption

    from services.converter.parsing.word_backend import WordBackend

    return DocumentConverter(
        allowed_formats=[InputFormat.DOCX],
        format_options={InputFormat.DOCX: WordFormatOption(backend=WordBackend)},
    )


def _convert(content: io.BytesIO) -> str:
    from docling.datamodel.base_models import ConversionStatus, DocumentStream

    stream = DocumentStream(name="document.docx", stream=content)
    try:
        result = _converter().convert(stream, raises_on_error=False)
    except _DAMAGE as error:
        # It opens the document before it looks at that argument.
        raise Refusal("corrupt-document", "the document cannot be read") from error
    if result.status != ConversionStatus.SUCCESS:
        raise Refusal("corrupt-document", "the document cannot be read")
    return _parted(to_markdown(result.document))


def _parted(markdown: str) -> str:
    """Tables and lists in the form that readers of Markdown expect of them.

    Docling leaves no blank line between an item and a table after it, indents only the first line
    of a table in a list, and indents an item that skips a level so far that it would be code.
    """
    lines: list[str] = []
    levels: list[tuple[int, int]] = []
    fence = False
    for text in markdown.split("\n"):
        fence ^= text.lstrip().startswith("```")
        item = None if fence else _ITEM.match(text)
        row = not fence and text.lstrip(" ").startswith("|")
        before = lines[-1] if lines else ""
        if before and text and not fence and row != before.startswith("|"):
            lines.append("")
        if item:
            lines.append(" " * _indent(levels, len(item[1])) + text.lstrip(" "))
            continue
        if text and not text.startswith(" "):
            levels.clear()
        lines.append(_narrow(text.lstrip(" ")) if row else text)
    return "\n".join(lines)


def _narrow(row: str) -> str:
    """A row without padding, which docling leaves in the tables of charts."""
    cells = [cell.strip(" ") for cell in _BAR.split(row)[1:-1]]
    if cells and all(map(_RULE.fullmatch, cells)):
        cells = ["-"] * len(cells)
    return f"| {' | '.join(cells)} |" if cells else row


def _indent(levels: list[tuple[int, int]], told: int) -> int:
    """How far an item is to be indented; `levels`: the open ones, as told and as written."""
    while levels and levels[-1][0] > told:
        levels.pop()
    if not levels or levels[-1][0] < told:
        levels.append((told, levels[-1][1] + 4 if levels else 0))
    return levels[-1][1]
