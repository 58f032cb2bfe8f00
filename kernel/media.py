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
XLS = "application/vnd.ms-excel"
DOC = "application/msword"
PPT = "application/vnd.ms-powerpoint"
MSG = "application/vnd.ms-outlook"
EML = "message/rfc822"
_OPEN = "application/vnd.oasis.opendocument."
ODT = _OPEN + "text"
ODS = _OPEN + "spreadsheet"
ODP = _OPEN + "presentation"
EPUB = "application/epub+zip"
RTF = "application/rtf"
PNG, JPEG, TIFF, GIF, WEBP, BMP = (
    "image/png", "image/jpeg", "image/tiff", "image/gif", "image/webp", "image/bmp",
)  # fmt: skip
PICTURES = frozenset({PNG, JPEG, TIFF, GIF, WEBP, BMP})

SUPPORTED: frozenset[str] = PICTURES | frozenset({
    MARKDOWN, PLAIN, HTML, CSV, JSON, PDF, DOCX, XLSX, XLS, PPTX, ODT, ODS, ODP, EPUB, RTF, EML,
    MSG,
})  # fmt: skip
"""What the converter can read."""

_ADVICE = {
    DOC: "save it as DOCX", PPT: "save it as PPTX", ZIP: "send the files in it",
    XML: "save it as HTML, CSV, JSON or text", OLE: "save it in the format of a newer program",
    "application/gzip": "unpack it",
}  # fmt: skip


def unread(media_type: str) -> str:
    """Why a file of this type is refused, and what can be done."""
    advice = _ADVICE.get(media_type)
    return f"{media_type} is not read" + (f": {advice}" if advice else "")


SNIFF_BYTES = 65536
"""How many first bytes `sniff` can make use of."""

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Old office formats, Outlook messages, and the wrapping of encrypted new ones."""

_BY_NAME: dict[str, str] = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".mdown": MARKDOWN, ".mkd": MARKDOWN,
    ".csv": CSV, ".tsv": CSV, ".tab": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON,
    ".htm": HTML, ".html": HTML, ".xhtml": HTML,
    ".txt": PLAIN, ".text": PLAIN, ".log": PLAIN,
}  # fmt: skip
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
    (b"II+\x00", TIFF),
    (b"MM\x00+", TIFF),
    (b"GIF8", GIF),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"{\\rtf", RTF),
    (b"\x7fELF", OCTETS),
    (b"MZ", OCTETS),
)
_ZIP_FOLDERS = {b"word": DOCX, b"xl": XLSX, b"ppt": PPTX}
_ZIP_MIMETYPES = tuple((t.encode(), t) for t in (EPUB, ODT, ODS, ODP, _OPEN.rstrip(".")))
_ENTRY = re.compile(rb"PK\x03\x04.{26}()", re.DOTALL)
_ZIP_NAMES = {
    ".docx": DOCX, ".docm": DOCX, ".dotx": DOCX, ".xlsx": XLSX, ".xlsm": XLSX, ".xltx": XLSX,
    ".pptx": PPTX, ".pptm": PPTX, ".potx": PPTX, ".ppsx": PPTX, ".odt": ODT, ".ott": ODT,
    ".ods": ODS, ".ots": ODS, ".odp": ODP, ".otp": ODP, ".epub": EPUB,
}  # fmt: skip
_ZIP_SIGNS = frozenset({b"[Content_Types].xml", b"META-INF/container.xml", b"content.xml"})
"""Entries that an office file or a book may start with, and an ordinary zip has not."""
_OLE_STREAMS = (
    ("WordDocument", DOC),
    ("PowerPoint Document", PPT),
    ("Workbook", XLS),
    ("Book", XLS),
    ("__properties_version1.0", MSG),
)
_MSG_NAMES = ("__nameid_version1.0", "__substg1.0_", "__recip_version1.0_", "__attach_version1.0_")
"""How entries of an Outlook message begin; a message inside another document lies deeper."""
_OLE_NAMES = {
    ".xls": XLS, ".xlt": XLS, ".xla": XLS, ".doc": DOC, ".dot": DOC, ".ppt": PPT, ".pps": PPT,
    ".pot": PPT, ".msg": MSG,
}  # fmt: skip
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
        return _ole_kind(head, suffix)
    binary = _binary_kind(head)
    if binary is not None:
        return binary
    text = _as_text(head)
    return OCTETS if text is None else _text_kind(text, suffix)


def _binary_kind(head: bytes) -> str | None:
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    # Two letters are not enough: its reserved fields are empty.
    return BMP if head[:2] == b"BM" and head[6:10] == bytes(4) else None


def _zip_kind(head: bytes, suffix: str) -> str:
    """Kind of a zip by the names of its entries, as far as `head` shows their local headers."""
    names = [head[m.start(1) : m.start(1) + _u16(m[0][26:28])] for m in _ENTRY.finditer(head)]
    if names[:1] == [b"mimetype"]:
        content = head[30 + len(names[0]) :]
        told = next((t for mark, t in _ZIP_MIMETYPES if content.startswith(mark)), None)
        # It should lie there unpacked; where it does not, the name has to do.
        packed = head[8:10] != b"\0\0"
        return told or (_ZIP_NAMES.get(suffix, ZIP) if packed else ZIP)
    # In order: an embedded workbook shows its own headers behind those of its document.
    for name in names:
        if name.partition(b"/")[0] in _ZIP_FOLDERS:
            return _ZIP_FOLDERS[name.partition(b"/")[0]]
    unseen = len(head) >= SNIFF_BYTES or not _ZIP_SIGNS.isdisjoint(names)
    return _ZIP_NAMES.get(suffix, ZIP) if unseen else ZIP


def _ole_kind(head: bytes, suffix: str) -> str:
    """Kind of an OLE container by the names in the first sector of its directory.

    An encrypted new document is called by its name: the converter says why it cannot read it.
    """
    sector = 1 << min(_u16(head[30:32]), 12)
    start = (int.from_bytes(head[48:52], "little") + 1) * sector
    entries = (head[at : at + 128] for at in range(start, min(start + sector, len(head)), 128))
    names = {entry[:64].decode("utf-16-le", "replace").partition("\0")[0] for entry in entries}
    if any(name.startswith(_MSG_NAMES) for name in names):
        return MSG
    if "EncryptedPackage" in names or not names & {name for name, _ in _OLE_STREAMS}:
        return {**_ZIP_NAMES, **_OLE_NAMES}.get(suffix, OLE)
    return next(kind for name, kind in _OLE_STREAMS if name in names)


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
    """UTF-16 without BOM has spaces and line ends as two bytes, one of them NUL.

    Whole units are counted: in Latin text a space has a NUL on either side.
    """
    little, big = (_blanks(head, encoding) for encoding in ("utf-16-le", "utf-16-be"))
    if max(little, big) < max(1, len(head) // 200):
        return None
    return "utf-16-le" if little >= big else "utf-16-be"


def _blanks(head: bytes, encoding: str) -> int:
    text = head.decode(encoding, "replace")
    return text.count(" ") + text.count("\n")


def _text_kind(text: str, suffix: str) -> str:
    text = text.removeprefix("\ufeff")
    named = _BY_NAME.get(suffix)
    if _is_mail(text, suffix):
        return EML
    if _is_html(text, named):
        return HTML
    if named in {MARKDOWN, CSV, PLAIN}:
        return str(named)
    if named in {JSON, None} and (_is_json(text) or _is_json_lines(text)):
        return JSON
    if text.lstrip().startswith("<?xml" if suffix != ".xml" else "<"):
        # Data in a language of its own; with or without the declaration, which may be left out.
        return XML
    # `.html` without any tag, `.json` that is no JSON, `.pdf` that is prose: plain text.
    return PLAIN


_HEADER = re.compile(r"([!-9;-~]{1,77}):[ \t]?[^\n]*(?:\r?\n[ \t]+\S[^\n]*)*\r?(?:\n|\Z)")
_MAIL_HEADERS = frozenset({
    "from", "to", "subject", "date", "message-id", "received", "return-path", "mime-version",
    "delivered-to", "reply-to", "content-type", "x-mailer", "in-reply-to", "references", "sender",
})  # fmt: skip


_ENVELOPE = re.compile(r"(?:\r?\n)*>?From \S[^\n]*\n")
"""The line with which a mailbox begins a mail."""


def _is_mail(text: str, suffix: str) -> bool:
    """Lines of a mail's header at the top: four different ones, or two if the name says so."""
    found: set[str] = set()
    envelope = _ENVELOPE.match(text)
    at = envelope.end() if envelope else 0
    for _ in range(60):
        header = _HEADER.match(text, at)
        if header is None:
            break
        found.add(header[1].lower())
        at = header.end()
    known = found & _MAIL_HEADERS
    return bool(known & {"from", "message-id", "received", "mime-version"}) and (
        len(known) >= (2 if suffix == ".eml" else 4)
    )


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


def _is_json_lines(text: str) -> bool:
    """Two objects or arrays, each on a line of its own, start the file."""
    lines = [line for line in text.split("\n", 8) if line.strip()][:2]
    return len(lines) == 2 and all(line.lstrip()[:1] in "{[" and _is_json(line) for line in lines)


# --- names that say something else --------------------------------------------------------------

_TEXTS = frozenset({PLAIN, MARKDOWN, CSV, JSON, XML})
_CALLED = {
    MARKDOWN: "Markdown", PLAIN: "plain text", HTML: "HTML", CSV: "CSV", JSON: "JSON", XML: "XML",
    PDF: "PDF", DOCX: "DOCX", XLSX: "XLSX", PPTX: "PPTX", XLS: "XLS", DOC: "DOC", PPT: "PPT",
    MSG: "MSG", ODT: "ODT", ODS: "ODS", ODP: "ODP", EPUB: "EPUB", RTF: "RTF", ZIP: "ZIP",
    OLE: "an OLE container", OCTETS: "binary", EML: "EML",
}  # fmt: skip
_CLAIMS: dict[str, str] = {
    **_BY_NAME, **_ZIP_NAMES, **_OLE_NAMES, ".pdf": PDF, ".rtf": RTF, ".xml": XML, ".zip": ZIP,
    ".eml": EML, ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
    ".tif": "image/tiff", ".tiff": "image/tiff", ".gif": "image/gif",
}  # fmt: skip


def lie(name: str, media_type: str) -> str | None:
    """`the name says PDF, the content is HTML`, or None when they agree.

    A name without an ending that is known claims nothing. Kinds of text that only a name can tell
    apart agree with each other, except that something called JSON has to be JSON.

    Args:
        name: the file's name.
        media_type: what `sniff` found.
    """
    claimed = _CLAIMS.get(PurePosixPath(name.lower()).suffix)
    if claimed is None or claimed == media_type:
        return None
    if {claimed, media_type} <= _TEXTS and claimed != JSON:
        return None
    return f"the name says {called(claimed)}, the content is {called(media_type)}"


def called(media_type: str) -> str:
    """What people call it: `PDF`, `plain text`."""
    return _CALLED.get(media_type) or media_type.rpartition("/")[2].upper()


FAMILIES: dict[str, frozenset[str]] = {
    "pdf": frozenset({PDF}), "word": frozenset({DOCX, DOC, ODT, RTF}),
    "sheet": frozenset({XLSX, XLS, ODS, CSV}), "slides": frozenset({PPTX, PPT, ODP}),
    "mail": frozenset({EML, MSG}), "web": frozenset({HTML}), "book": frozenset({EPUB}),
    "text": frozenset({PLAIN, MARKDOWN}), "markdown": frozenset({MARKDOWN}), "image": PICTURES,
}  # fmt: skip
"""Kinds of files as people ask for them."""


def types_of(name: str) -> frozenset[str]:
    """Media types by what people call them: `application/pdf`, a family, an ending like `docx`.

    Raises:
        ValueError: nothing is called so.
    """
    if "/" in name:
        return frozenset({name})
    if name in FAMILIES:
        return FAMILIES[name]
    if f".{name}" in _CLAIMS:
        return frozenset({_CLAIMS[f".{name}"]})
    raise ValueError(f"no type of file: a media type, an ending, or {', '.join(FAMILIES)}")
