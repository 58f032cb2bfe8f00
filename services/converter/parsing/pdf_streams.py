"""Pages of a PDF whose content cannot be unpacked to its end.

Every reader shows what comes before the damage and says nothing: a page without any text looks like
an empty one. That a part is missing can only be told from the packed bytes.
"""

import base64
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pikepdf

# What objects of the wrong kind raise, besides qpdf's own errors.
_ODD = (ValueError, TypeError, KeyError, AttributeError, IndexError, RuntimeError, OverflowError)
_PIECE = 1 << 20
_MOST_UNPACKED = 256 << 20
"""Bytes; content that is larger is taken for whole, so that a bomb costs a second at most."""
_CHECK_SUM = 4
_SMALL = 1 << 20
"""Bytes of content packed in another way that are unpacked at once."""


def torn_pages(path: Path, pages: int) -> frozenset[int]:
    """Numbers, from 1, of the pages that lack a part of their content or all of it.

    Args:
        path: a PDF; none are found in one that cannot be opened.
        pages: how many it has; where they are counted in another way, none are found, since their
            numbers would be others.
    """
    import pikepdf

    try:
        with pikepdf.open(path, suppress_warnings=True) as document:
            if len(document.pages) != pages:
                return frozenset()
            return frozenset(n for n, page in enumerate(document.pages, 1) if _is_torn(page))
    except (pikepdf.PdfError, pikepdf.PasswordError, *_ODD):
        # qpdf gives up on some files that pdfium reads: then nothing is known of their streams.
        return frozenset()


def _is_torn(page: "pikepdf.Page") -> bool:
    import pikepdf

    contents = page.obj.get("/Contents")
    parts = list(contents.as_list()) if isinstance(contents, pikepdf.Array) else [contents]
    return any(isinstance(part, pikepdf.Stream) and not _unpacks(part) for part in parts)


def _unpacks(stream: "pikepdf.Stream") -> bool:
    import pikepdf

    filters = stream.get("/Filter")
    listed = filters.as_list() if isinstance(filters, pikepdf.Array) else [filters]
    names = [str(name) for name in listed if name is not None]
    try:
        if names == ["/FlateDecode"]:
            return _inflates(stream.read_raw_bytes())
        if names == ["/ASCII85Decode", "/FlateDecode"]:
            return _inflates(_from_ascii85(stream.read_raw_bytes()))
        if names and int(stream.get("/Length", 0)) <= _SMALL:
            stream.read_bytes()
    except (pikepdf.PdfError, ValueError):
        return False
    return True


def _from_ascii85(packed: bytes) -> bytes:
    start, end = packed.lstrip(), packed.rstrip()
    framed = (b"" if start.startswith(b"<~") else b"<~") + packed.strip()
    return base64.a85decode(framed + (b"" if end.endswith(b"~>") else b"~>"), adobe=True)


def _inflates(packed: bytes) -> bool:
    """Whether it comes to its end without damage; careless programs leave out the check sum, and
    nothing is lost by that."""
    if not packed.strip():
        return True
    return _ends(packed, zlib.MAX_WBITS) or _ends(packed[2:], -zlib.MAX_WBITS, unchecked=True)


def _ends(packed: bytes, window: int, *, unchecked: bool = False) -> bool:
    """`window`: as zlib has it; negative for what has neither head nor check sum. `unchecked`: only
    if no whole check sum follows."""
    unpacking = zlib.decompressobj(window)
    unpacked = 0
    try:
        while packed and not unpacking.eof:
            unpacked += len(unpacking.decompress(packed, _PIECE))
            packed = unpacking.unconsumed_tail
            if unpacked > _MOST_UNPACKED:
                return True
    except zlib.error:
        return False
    return unpacking.eof and not (unchecked and len(unpacking.unused_data) >= _CHECK_SUM)
