"""DOCX by docling, after hidden text was taken out of the markup."""

import io
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import DOCX
from services.converter.parsing.archive import Archive
from services.converter.parsing.markdown import to_markdown
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.wordml import Styles, clean, notes, parse_xml, text_of
from services.converter.settings import ParseOptions

_DOCUMENT = "word/document.xml"


def parse_docx(path: Path, options: ParseOptions) -> Parse:
    """A Word document: headings, lists, tables, footnotes; comments and deletions as hidden text.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `empty-document`.
    """
    with Archive(path, options) as archive:
        if _DOCUMENT not in archive.names:
            raise Refusal("corrupt-document", "the container holds no document")
        root = parse_xml(archive.read(_DOCUMENT))
        footnotes = {
            **notes(_part(archive, "word/footnotes.xml"), "footnote"),
            **notes(_part(archive, "word/endnotes.xml"), "endnote"),
        }
        hidden = clean(root, Styles(_part(archive, "word/styles.xml")), footnotes)
        hidden += _side_parts(archive)
        properties = _properties(archive)
        content = _rezipped(archive, etree.tostring(root, xml_declaration=True, encoding="UTF-8"))
    markdown = _convert(content)
    if not markdown.strip():
        raise Refusal("empty-document", "the document has no visible text")
    hidden += [HiddenText(kind="metadata", text=text) for text in properties.values()]
    meta = BodyMeta(
        title=told_title(line(properties.get("title"))),
        language=UNKNOWN,
        media_type=DOCX,
        author=line(properties.get("creator")) or None,
        date=properties.get("created"),
    )
    document = ParsedDocument(markdown=markdown, hidden=tuple(dict.fromkeys(hidden)), meta=meta)
    return Parse(document)


def _part(archive: Archive, name: str) -> Any | None:
    data = archive.read(name)
    return parse_xml(data) if data else None


def _side_parts(archive: Archive) -> list[HiddenText]:
    """Comments; and heads and feet, which repeat on every page and are not part of the text."""
    hidden: list[HiddenText] = []
    for name in sorted(archive.names):
        if re.fullmatch(r"word/comments\w*\.xml", name):
            root = _part(archive, name)
            hidden += [HiddenText(kind="comment", text=t) for c in root or () if (t := text_of(c))]
        elif re.fullmatch(r"word/(header|footer)\d*\.xml", name):
            text = text_of(_part(archive, name))
            hidden += [HiddenText(kind="notes", text=text)] if text else []
    return hidden


def _properties(archive: Archive) -> dict[str, str]:
    """Core, extended and custom properties with text, by their local name."""
    found: dict[str, str] = {}
    for name in ("docProps/core.xml", "docProps/app.xml", "docProps/custom.xml"):
        for element in _part(archive, name) or ():
            text = re.sub(r"\s+", " ", "".join(element.itertext())).strip()
            key = element.get("name") or etree.QName(element).localname
            if text and key not in _BORING:
                found.setdefault(key, text[:2000])
    return found


_BORING = frozenset({
    "Template", "TotalTime", "Pages", "Words", "Characters", "Application", "DocSecurity", "Lines",
    "Paragraphs", "ScaleCrop", "LinksUpToDate", "CharactersWithSpaces", "SharedDoc", "AppVersion",
    "HyperlinksChanged", "HeadingPairs", "TitlesOfParts", "revision", "modified", "lastPrinted",
})  # fmt: skip


def _rezipped(archive: Archive, document: bytes) -> io.BytesIO:
    """The container with the changed document; pictures are left out, docling reads none."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.names):
            copy.writestr(name, document if name == _DOCUMENT else archive.read(name))
    out.seek(0)
    return out


@cache
def _converter() -> Any:
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter

    return DocumentConverter(allowed_formats=[InputFormat.DOCX])


def _convert(content: io.BytesIO) -> str:
    from docling.datamodel.base_models import ConversionStatus, DocumentStream

    stream = DocumentStream(name="document.docx", stream=content)
    result = _converter().convert(stream, raises_on_error=False)
    if result.status != ConversionStatus.SUCCESS:
        raise Refusal("corrupt-document", "the document cannot be read")
    return to_markdown(result.document)
