"""Media types decided by content; a file's name only breaks ties among text formats."""

import codecs
import json
import re
from pathlib import PurePosixPath

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
HTML = "text/html"
CSV = "text/csv"
JSON = "application/json"
XML = "application/xml"
PDF = "application/pdf"
OCTETS = "application/octet-stream"
ZIP = "application/zip"
OLE = "application/x-ole-storage"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
XLSX = _OFFICE + "spreadsheetml.sheet"
PPTX = _OFFICE + "presentationml.presentation"

SUPPORTED: frozenset[str] = frozenset({MARKDOWN, PLAIN, HTML, PDF, DOCX})
"""What the converter can read."""

SNIFF_BYTES = 65536
"""How many first bytes `sniff` can make use of."""

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Old office formats, Outlook messages, and the wrapping of encrypted new ones."""

_BY_NAME: dict[str, str] = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".mdown": MARKDOWN, ".mkd": MARKDOWN,
    ".csv": CSV, ".tsv": CSV, ".json": JSON, ".htm": HTML, ".html": HTML, ".xhtml": HTML,
    ".txt": PLAIN, ".text": PLAIN, ".log": PLAIN,
}  # fmt: skip
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"GIF8", "image/gif"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"{\\rtf", "application/rtf"),
    (b"\x7fELF", OCTETS),
    (b"MZ", OCTETS),
)
_ZIP_FOLDERS = {b"word": DOCX, b"xl": XLSX, b"ppt": PPTX}
_ZIP_MIMETYPES = (
    (b"application/epub+zip", "application/epub+zip"),
    (b"application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (b"application/vnd.oasis.opendocument", "application/vnd.oasis.opendocument"),
)
_ENTRY = re.compile(rb"PK\x03\x04.{26}()", re.DOTALL)
_ZIP_NAMES = {".docx": DOCX, ".xlsx": XLSX, ".pptx": PPTX}
_TEXT_CONTROLS = frozenset({9, 10, 11, 12, 13, 27})
_DOCTYPE = re.compile(r"<!doctype\s+html\b", re.IGNORECASE)
_HTML_ROOT = re.compile(r"<(html|head|body)\b[^>]*>", re.IGNORECASE)
_HTML_TAG = re.compile(
    r"</?(html|head|body|title|meta|div|p|table|ul|ol|h[1-6]|script|style|article|section)\b[^>]*>",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*|<!--.*?-->\s*)*", re.DOTALL)


def sniff(head: bytes, name: str) -> str:
    """Media type of a file that starts with `head` (8 KiB or more; all of it if shorter).

    Args:
        head: the first bytes, up to `SNIFF_BYTES` are looked at.
        name: the file's name; decides only between text formats and between kinds of zip
            whose table of contents lies outside `head`.

    Returns:
        A media type without parameters; `application/octet-stream` when nothing fits.
    """
    head = head[:SNIFF_BYTES]
    suffix = PurePosixPath(name.lower()).suffix
    # Readers accept junk before a PDF's header within the first KiB.
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _zip_kind(head, suffix)
    if head.startswith(OLE_MAGIC):
        # An office name on such a container means encrypted; the converter says so.
        return _ZIP_NAMES.get(suffix, OLE)
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    text = _as_text(head)
    return OCTETS if text is None else _text_kind(text, suffix)


def _zip_kind(head: bytes, suffix: str) -> str:
    """Kind of a zip by the names of its entries, as far as `head` shows their local headers."""
    names = [head[m.start(1) : m.start(1) + _u16(m[0][26:28])] for m in _ENTRY.finditer(head)]
    if names[:1] == [b"mimetype"]:
        content = head[30 + len(names[0]) :]
        return next((t for mark, t in _ZIP_MIMETYPES if content.startswith(mark)), ZIP)
    # In order: an embedded workbook shows its own headers behind those of its document.
    for name in names:
        if name.partition(b"/")[0] in _ZIP_FOLDERS:
            return _ZIP_FOLDERS[name.partition(b"/")[0]]
    unseen = len(head) >= SNIFF_BYTES or b"[Content_Types].xml" in names
    return _ZIP_NAMES.get(suffix, ZIP) if unseen else ZIP


def _u16(little_endian: bytes) -> int:
    return int.from_bytes(little_endian, "little")


def _as_text(head: bytes) -> str | None:
    """`head` in some text encoding (wrong letters do not matter here), or None if binary."""
    for bom, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(bom):
            return head.decode(encoding, "replace")
    unmarked = unmarked_utf16(head)
    if unmarked:
        return head.decode(unmarked, "replace")
    controls = sum(head.count(c) for c in range(32) if c not in _TEXT_CONTROLS)
    return None if controls > len(head) // 100 else head.decode("latin-1")


def unmarked_utf16(head: bytes) -> str | None:
    """UTF-16 without BOM has spaces and line ends as two bytes, one of them NUL."""
    little = head.count(b" \x00") + head.count(b"\n\x00")
    big = head.count(b"\x00 ") + head.count(b"\x00\n")
    if max(little, big) < max(1, len(head) // 200):
        return None
    return "utf-16-le" if little >= big else "utf-16-be"


def _text_kind(text: str, suffix: str) -> str:
    text = text.removeprefix("\ufeff")
    named = _BY_NAME.get(suffix)
    if _is_html(text, named):
        return HTML
    if named in {MARKDOWN, CSV, PLAIN}:
        return str(named)
    if named in {JSON, None} and _is_json(text):
        return JSON
    if text.lstrip().startswith("<?xml"):
        return XML
    # `.html` without any tag, `.json` that is no JSON, `.pdf` that is prose: plain text.
    return PLAIN


def _is_html(text: str, named: str | None) -> bool:
    """A page by its first tag; a fragment only when the name says HTML or says nothing."""
    lead = _LEAD.match(text)
    start = text[lead.end() if lead else 0 :][:512]
    if _DOCTYPE.match(start) or _HTML_ROOT.match(start):
        return True
    if named == HTML:
        return _HTML_TAG.search(text) is not None
    return named is None and _HTML_TAG.match(start) is not None


def _is_json(text: str) -> bool:
    body = text.lstrip("\ufeff \t\r\n")
    if not body.startswith(("{", "[")):
        return False
    try:
        json.loads(body)
    except RecursionError:
        return True
    except ValueError:
        # A head cut out of a longer file cannot be complete.
        return len(text) >= SNIFF_BYTES // 2 and bool(re.match(r'[\[{]\s*["\[{\d\-tfn\]}]', body))
    return True
