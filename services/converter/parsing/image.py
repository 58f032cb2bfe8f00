"""Pictures as documents: every frame a page, read by OCR and laid out like a scanned PDF."""

import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from PIL import ExifTags, Image

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from services.converter.parsing.ocr import PageReader, engines, told_engines
from services.converter.parsing.pdf_places import written
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.scans import Drawn, page_of, read_drawn
from services.converter.parsing.structure import structure
from services.converter.parsing.upright import Straight
from services.converter.settings import ParseOptions

_FORMATS = ("PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP")
_MOST_PIXELS = 89_478_485
_MOST_READ = 8_000_000
_REDUCED_COPY = 254
_UNITS_PER_INCH = 72.0
_DPI = (50.0, 1200.0)
_LONGEST = 100_000
# What a decoder raises on bytes that are not what they say.
_BROKEN = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, ArithmeticError,
    struct.error, zlib.error, AttributeError, AssertionError,
)  # fmt: skip


def parse_image(path: Path, media_type: str, options: ParseOptions) -> Parse:
    """The text in a picture; a TIFF may have many pages, of an animation the first frame counts.

    Boxes are in points of the picture as it is shown: pixels over its resolution, where it tells
    one that can be true, else pixels.

    Raises:
        Refusal: `corrupt-document`, `decompression-bomb`, `too-many-pages`, `no-text`.
    """
    from services.converter.parsing.pdf_assembly import documents_of

    picture = _opened(path)
    with picture:
        count = _frames(picture, path, options)
        told = _Told.of(picture)
        if not options.ocr or not any(engines()):
            raise Refusal("no-text", f"a picture: {told_engines(options)}")
        missing: list[int] = []
        frames = _decoded(picture, count, missing)
        read, slow = read_drawn(PageReader(options), frames)
        scans = list(read.values())
    if count == len(missing):
        raise Refusal("corrupt-document", "the picture cannot be decoded")
    if slow and not scans:
        raise Refusal("parse-timeout", "the picture could not be read in time")
    if not scans:
        raise Refusal("no-text", f"no text was found in the picture: {told_engines(options)}")
    pages = [page_of(scan) for scan in scans]
    turns: dict[int, Straight] = {scan.reading.page: scan.frame for scan in scans}
    documents = documents_of(structure(pages, []), pages, turns)
    markdown, spans = written(documents)
    meta = BodyMeta(
        title=told_title(told.title), language=UNKNOWN, media_type=media_type,
        author=told.author or None, date=told.date, pages=count,
    )  # fmt: skip
    parsed = ParsedDocument(markdown=markdown, hidden=told.hidden, meta=meta, spans=spans)
    notes = [f"picture {told_engines(options)}"]
    if missing:
        notes.append(f"pages that could not be decoded: {', '.join(map(str, missing[:50]))}")
    if slow:
        notes.append(f"pages that took OCR too long: {', '.join(map(str, sorted(slow)[:50]))}")
    readings = tuple(scan.reading for scan in scans)
    return Parse(parsed, notes, tuple(sorted({*missing, *slow})), readings)


def _opened(path: Path) -> Image.Image:
    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return Image.open(path, formats=_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _bomb() from error
    except _BROKEN as error:
        raise Refusal("corrupt-document", "the picture cannot be decoded") from error


def _bomb() -> Refusal:
    return Refusal("decompression-bomb", f"more than {_MOST_PIXELS} pixels")


def _frames(picture: Image.Image, path: Path, options: ParseOptions) -> int:
    """Number of pages: a TIFF is a stack of them, other formats have one."""
    if picture.format != "TIFF":
        return 1
    count = max(1, _directories(path, options.max_pages + 1))
    if count > options.max_pages:
        raise Refusal("too-many-pages", f"more than {options.max_pages} pages")
    return count


def _directories(path: Path, most: int) -> int:
    """How many directories a TIFF chains, `most` at most.

    The library counts by reading each, and a damaged one would hide those after it.
    """
    seen: set[int] = set()
    with path.open("rb") as file:
        head = file.read(16)
        order = "<" if head[:2] == b"II" else ">"
        big = struct.unpack_from(f"{order}H", head, 2)[0] == 43
        entry, count_type, link_type = (20, "Q", "Q") if big else (12, "H", "I")
        at = struct.unpack_from(f"{order}{link_type}", head, 8 if big else 4)[0]
        while at and at not in seen and len(seen) < most:
            seen.add(at)
            try:
                file.seek(at)
                entries = struct.unpack(order + count_type, file.read(8 if big else 2))[0]
                file.seek(at + (8 if big else 2) + entry * entries)
                at = struct.unpack(order + link_type, file.read(8 if big else 4))[0]
            except (struct.error, OSError, OverflowError):
                # Cut off within a directory: that page is there, and cannot be read.
                break
    return len(seen)


def _decoded(
    picture: Image.Image, count: int, missing: list[int]
) -> Iterator[tuple[int, Drawn | None]]:
    """The frames by number; those that cannot be decoded are added to `missing`."""
    for number in range(1, count + 1):
        try:
            page = _page(picture, number)
        except _BROKEN:
            missing.append(number)
        else:
            yield number, page


def _page(picture: Image.Image, number: int) -> Drawn | None:
    """A frame in grey as it is shown, and its size in points; None for a thumbnail of another."""
    if number > 1:
        picture.seek(number - 1)
    if picture.format == "TIFF" and int(_tags(picture).get(_REDUCED_COPY, 0)) & 1:
        return None
    if picture.width * picture.height > _MOST_PIXELS:
        raise _bomb()
    if picture.format == "JPEG":
        # Decoded to grey at once: a third of the memory.
        picture.draft("L", picture.size)
    picture.load()
    across, down = _resolution(picture)
    grey = _grey(picture)
    turn = _TURNS.get(int(picture.getexif().get(ExifTags.Base.Orientation, 1)))
    if turn is not None:
        grey = grey.transpose(turn)
        if turn not in _KEEP_SIDES:
            across, down = down, across
    size = grey.width * _UNITS_PER_INCH / across, grey.height * _UNITS_PER_INCH / down
    return _reduced(grey), size


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_90,
}  # fmt: skip
"""What undoes each EXIF orientation."""
_KEEP_SIDES = frozenset(
    {
        Image.Transpose.FLIP_LEFT_RIGHT,
        Image.Transpose.FLIP_TOP_BOTTOM,
        Image.Transpose.ROTATE_180,
    }
)


def _tags(picture: Image.Image) -> Any:
    return getattr(picture, "tag_v2", {})


def _resolution(picture: Image.Image) -> tuple[float, float]:
    """Dots per inch across and down; one a point when the file tells none that can be true."""
    try:
        across, down = (float(value) for value in picture.info["dpi"])
    except _BROKEN:
        return _UNITS_PER_INCH, _UNITS_PER_INCH
    low, high = _DPI
    true = low <= across <= high and low <= down <= high
    return (across, down) if true else (_UNITS_PER_INCH, _UNITS_PER_INCH)


def _grey(picture: Image.Image) -> Image.Image:
    """Eight bits of grey; what is transparent is white."""
    if picture.has_transparency_data:
        coloured = picture.convert("RGBA")
        white = Image.new("RGBA", coloured.size, "white")
        return Image.alpha_composite(white, coloured).convert("L")
    if picture.mode in {"F", "I"} or picture.mode.startswith("I;"):
        return _stretched(np.asarray(picture, dtype=np.float32))
    if picture.mode in {"LAB", "La"}:
        return picture.getchannel(0)
    if picture.mode == "HSV":
        return picture.convert("RGB").convert("L")
    return picture.convert("L")


def _stretched(deep: Any) -> Image.Image:
    """Sixteen bits and more as eight; scanners of twelve bits leave the upper ones empty."""
    deep = np.nan_to_num(deep, nan=0.0, posinf=0.0, neginf=0.0)
    least, most = float(deep.min()), float(deep.max())
    span = (most - least) or 1.0
    return Image.fromarray(((deep - least) * (255.0 / span)).astype(np.uint8))


def _reduced(grey: Image.Image) -> Image.Image:
    """At most eight million pixels: an A4 page at 300 dpi."""
    factor = (grey.width * grey.height / _MOST_READ) ** 0.5
    if factor <= 1:
        return grey
    size = max(1, round(grey.width / factor)), max(1, round(grey.height / factor))
    return grey.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


# --- what the file says beside the picture ----------------------------------------------------


class _Told(NamedTuple):
    """Properties; `hidden` holds all text of the file that the picture does not show."""

    title: str
    author: str
    date: str | None
    hidden: tuple[HiddenText, ...]

    @classmethod
    def of(cls, picture: Image.Image) -> Self:
        """The properties of the first frame."""
        named: dict[str, str] = {}
        for key, value in islice(_properties(picture), _MOST_PROPERTIES):
            text = re.sub(r"\s+", " ", value.replace("\0", "")).strip()[:_LONGEST]
            if re.search(r"\w", text):
                named.setdefault(key.lower(), text)
        hidden = dict.fromkeys(HiddenText(kind="metadata", text=text) for text in named.values())
        date = _DATE.match(named.get("datetimeoriginal") or named.get("datetime", ""))
        return cls(
            title=line(next((named[k] for k in _TITLES if k in named), "")),
            author=line(next((named[k] for k in _AUTHORS if k in named), "")),
            date="-".join(date.groups()) if date else None,
            hidden=tuple(hidden),
        )


_TITLES = ("title", "xptitle", "documentname")
_AUTHORS = ("author", "xpauthor", "artist")
_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)")
_MOST_PROPERTIES = 500
_NO_TEXT = frozenset({
    "icc_profile", "exif", "photoshop", "mp", "mpoffset", "transparency", "version", "compression",
})  # fmt: skip
_CHARSETS = {
    b"ASCII\0\0\0": "ascii", b"UNICODE\0": "utf-16", b"JIS\0\0\0\0\0": "iso2022_jp",
}  # fmt: skip
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\ufffd]{4,}")


def _properties(picture: Image.Image) -> Iterator[tuple[str, str]]:
    """Name and text: chunks and comments of the format, EXIF, XMP and IPTC."""
    for key, value in list(picture.info.items()):
        if str(key).lower() not in _NO_TEXT and isinstance(value, str | bytes):
            yield str(key), _text_of(value)
    blocks = picture.info.get("photoshop")
    if isinstance(blocks, dict):
        yield from (("iptc", _text_of(block)) for block in blocks.values())
    try:
        exif = picture.getexif()
        tags = [*exif.items(), *exif.get_ifd(ExifTags.IFD.Exif).items()]
    except _BROKEN:
        return
    for number, value in tags:
        name = ExifTags.TAGS.get(number, str(number))
        if isinstance(value, str | bytes) and name not in {"MakerNote", "PrintImageMatching"}:
            yield name, _text_of(value, wide=name.startswith("XP"))


def _as_utf8(value: str) -> str:
    """EXIF is read as Latin-1, and most programs write UTF-8 into it."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _text_of(value: str | bytes, *, wide: bool = False) -> str:
    """Bytes by the charset that they name, else what can be read in them."""
    if isinstance(value, str):
        return _as_utf8(value)
    value = value[: 4 * _LONGEST]
    if wide:
        return value.decode("utf-16-le", "replace")
    charset = _CHARSETS.get(value[:8])
    if charset is not None:
        return value[8:].decode(charset, "replace")
    return " ".join(_PRINTABLE.findall(value.decode("utf-8", "replace")))
