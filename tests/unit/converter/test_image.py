"""Pictures as documents: every kind of file and pixel, what the file says beside them, damage."""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, PngImagePlugin

from contracts.events import Reading
from kernel.errors import Refusal
from kernel.media import BMP, GIF, JPEG, PICTURES, PNG, SUPPORTED, TIFF, WEBP, sniff
from services.converter.parsers import parser_for
from services.converter.parsing import image as parser
from services.converter.parsing import parse
from services.converter.parsing.image import parse_image
from services.converter.parsing.ocr import Scan
from services.converter.parsing.ocr_engines import TooSlow
from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.result import Parse
from services.converter.parsing.upright import Frame
from services.converter.settings import ParseOptions
from tests.unit.converter.drawn import TEXTS, drawn

OPTIONS = ParseOptions(max_pages=20)
SHAPE = (60, 40)


class Noting:
    """In the place of OCR: notes the pages that it is given, reads one word on each."""

    pages: list[tuple[Image.Image, tuple[float, float]]]

    def __init__(self, options: ParseOptions) -> None:
        del options

    def read(self, image: Image.Image, number: int, size: tuple[float, float]) -> Scan | None:
        self.pages.append((image, size))
        word = Word(f"word{number}", 2, 2, 20, 12, size=10)
        return Scan(
            [word], [], Frame.of(*size), Reading(page=number, engine="a", scores={"a": 1.0})
        )


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Noting]]:
    Noting.pages = []
    monkeypatch.setattr(parser, "PageReader", Noting)
    monkeypatch.setattr(parser, "engines", lambda: (None, object()))
    return Noting  # type: ignore[return-value]


def picture(mode: str = "L") -> Image.Image:
    """White, with a black corner at the top left."""
    page = Image.new("L", SHAPE, 255)
    page.paste(0, (0, 0, 10, 10))
    return page.convert(mode)


def stored(page: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    page.save(out, kind, **options)
    return out.getvalue()


def parsed(folder: Path, data: bytes, options: ParseOptions = OPTIONS) -> Parse:
    path = folder / "picture"
    path.write_bytes(data)
    return parse_image(path, sniff(data, "x"), options)


def refused(folder: Path, data: bytes, options: ParseOptions = OPTIONS) -> str:
    with pytest.raises(Refusal) as refusal:
        parsed(folder, data, options)
    return refusal.value.code


def corners(noting: type[Noting]) -> list[int]:
    """Greys at the top left, top right, bottom left and bottom right of the page that was read."""
    grey = np.asarray(noting.pages[-1][0])
    assert noting.pages[-1][0].mode == "L"
    return [int(grey[y, x]) for y in (3, -4) for x in (3, -4)]


# --- kinds of files and pixels ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        ("PNG", PNG), ("JPEG", JPEG), ("TIFF", TIFF), ("GIF", GIF), ("WEBP", WEBP), ("BMP", BMP),
    ],
)  # fmt: skip
def test_every_format_is_told_by_its_content_and_read(
    kind: str, media_type: str, tmp_path: Path, noting: type[Noting]
) -> None:
    data = stored(picture("RGB"), kind)
    assert sniff(data, "letter.txt") == media_type
    assert media_type in SUPPORTED
    assert "tesseract" in parser_for(media_type, OPTIONS) or "rapidocr" in parser_for(
        media_type, OPTIONS
    )
    found = parsed(tmp_path, data)
    assert found.document.markdown == "word1"
    assert found.document.meta.media_type == media_type
    assert corners(noting)[0] < 40
    assert min(corners(noting)[1:]) > 215


def transparent() -> Image.Image:
    ink = Image.fromarray(255 - np.asarray(picture()))
    return Image.merge("RGBA", (*[Image.new("L", SHAPE, 0)] * 3, ink))


def palette_with_transparency() -> bytes:
    page = picture().convert("P")
    return stored(page, "PNG", transparency=255)


def in_lab() -> Image.Image:
    srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    page = ImageCms.profileToProfile(picture("RGB"), srgb, lab, outputMode="LAB")
    assert page is not None
    return page


def deep(high: int) -> Image.Image:
    return Image.fromarray((np.asarray(picture()).astype(np.uint16) // 255) * high)


@pytest.mark.parametrize(
    "data",
    [
        stored(picture("1"), "TIFF", compression="group4"),
        stored(picture("P"), "GIF"),
        stored(picture("LA"), "PNG"),
        stored(transparent(), "PNG"),
        stored(transparent(), "WEBP"),
        palette_with_transparency(),
        stored(picture("CMYK"), "JPEG"),
        stored(picture("CMYK"), "TIFF"),
        stored(picture("YCbCr"), "JPEG"),
        stored(in_lab(), "TIFF"),
        stored(deep(65535), "PNG"),
        stored(deep(4095), "TIFF"),
        stored(picture("F"), "TIFF"),
        stored(picture("I"), "TIFF"),
    ],
    ids=[
        "bilevel", "palette", "grey-alpha", "alpha-png", "alpha-webp", "palette-alpha", "cmyk-jpeg",
        "cmyk-tiff", "ycbcr", "lab", "sixteen-bits", "twelve-bits", "float", "int",
    ],
)  # fmt: skip
def test_every_kind_of_pixel_is_black_on_white(
    data: bytes, tmp_path: Path, noting: type[Noting]
) -> None:
    parsed(tmp_path, data)
    assert corners(noting)[0] < 40
    assert min(corners(noting)[1:]) > 215


@pytest.mark.parametrize(
    ("orientation", "corner"), [(1, 0), (2, 1), (3, 3), (4, 2), (5, 0), (6, 1), (7, 3), (8, 2)]
)
@pytest.mark.parametrize("kind", ["JPEG", "TIFF", "PNG", "WEBP"])
def test_the_picture_is_turned_as_it_is_shown(
    kind: str, orientation: int, corner: int, tmp_path: Path, noting: type[Noting]
) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    parsed(tmp_path, stored(picture("RGB"), kind, exif=exif, dpi=(144, 144)))
    assert corners(noting)[corner] < 40
    assert sum(corners(noting)) > 3 * 215
    upright = orientation < 5
    assert noting.pages[-1][0].size == (SHAPE if upright else SHAPE[::-1])


@pytest.mark.parametrize(
    ("dpi", "size"),
    [((144, 144), (30, 20)), (None, SHAPE), ((1, 1), SHAPE), ((9999, 9999), SHAPE)],
)
def test_points_are_pixels_over_a_resolution_that_can_be_true(
    dpi: tuple[int, int] | None, size: tuple[int, int], tmp_path: Path, noting: type[Noting]
) -> None:
    found = parsed(tmp_path, stored(picture(), "PNG", **({"dpi": dpi} if dpi else {})))
    assert noting.pages[0][1] == pytest.approx(size, rel=0.01)
    (span,) = found.document.spans
    assert span.place.page == 1
    assert span.place.box == (2.0, 2.0, 20.0, 12.0)
    assert found.document.markdown.encode()[span.byte_start : span.byte_end] == b"word1"


def test_a_large_picture_is_reduced_before_it_is_read(tmp_path: Path, noting: type[Noting]) -> None:
    parsed(tmp_path, stored(Image.new("1", (6000, 5000), 1), "PNG"))
    image, size = noting.pages[0]
    assert image.width * image.height <= 8_010_000
    assert size == (6000, 5000)


# --- pages ------------------------------------------------------------------------------------


def test_every_page_of_a_tiff_is_a_page(tmp_path: Path, noting: type[Noting]) -> None:
    data = stored(picture(), "TIFF", save_all=True, append_images=[picture(), picture()])
    found = parsed(tmp_path, data)
    assert found.document.meta.pages == 3
    assert [reading.page for reading in found.readings] == [1, 2, 3]
    assert [span.place.page for span in found.document.spans] == [1, 2, 3]


def test_a_small_copy_of_a_page_is_no_page(tmp_path: Path, noting: type[Noting]) -> None:
    out = io.BytesIO()
    picture().save(
        out, "TIFF", save_all=True, append_images=[picture().resize((30, 20))],
        tiffinfo={254: 0},
    )  # fmt: skip
    data = bytearray(out.getvalue())
    # The second directory's NewSubfileType (tag 254) becomes 1: a reduced copy.
    tag = bytes.fromhex("fe00 0400 01000000 00000000")
    second = data.find(tag, data.find(tag) + 1)
    assert second > 0
    data[second + 8] = 1
    parsed(tmp_path, bytes(data))
    assert len(noting.pages) == 1


def test_only_the_first_frame_of_an_animation_counts(tmp_path: Path, noting: type[Noting]) -> None:
    frames = [Image.new("L", SHAPE, grey) for grey in (90, 160, 200)]
    found = parsed(tmp_path, stored(picture(), "GIF", save_all=True, append_images=frames))
    assert found.document.meta.pages == 1
    assert len(noting.pages) == 1


def test_too_many_pages_are_refused(tmp_path: Path, noting: type[Noting]) -> None:
    data = stored(picture(), "TIFF", save_all=True, append_images=[picture()] * 4)
    assert refused(tmp_path, data, ParseOptions(max_pages=4)) == "too-many-pages"


@pytest.mark.parametrize("big", [False, True])
def test_a_chain_of_pages_that_bites_its_tail_ends(
    big: bool, tmp_path: Path, noting: type[Noting]
) -> None:
    data = bytearray(
        stored(picture(), "TIFF", save_all=True, append_images=[picture()], big_tiff=big)
    )
    first = struct.unpack_from("<Q" if big else "<I", data, 8 if big else 4)[0]
    entries = struct.unpack_from("<Q" if big else "<H", data, first)[0]
    link = first + (8 + 20 * entries if big else 2 + 12 * entries)
    struct.pack_into("<Q" if big else "<I", data, link, first)
    assert sniff(bytes(data), "x") == TIFF
    assert parsed(tmp_path, bytes(data)).document.meta.pages == 1


def test_a_damaged_page_is_told_and_the_others_are_read(
    tmp_path: Path, noting: type[Noting]
) -> None:
    packed = bytearray(
        stored(picture(), "TIFF", save_all=True, append_images=[picture(), picture()])
    )
    # BitsPerSample (tag 258) of the second page: 77, which nothing can be.
    tag = bytes.fromhex("0201 0300 01000000 0800")
    second = packed.find(tag, packed.find(tag) + 1)
    packed[second + 8] = 77
    found = parsed(tmp_path, bytes(packed))
    assert found.missing_pages == (2,)
    assert "pages that could not be decoded: 2" in found.warnings
    assert [reading.page for reading in found.readings] == [1, 3]


# --- beside the picture -----------------------------------------------------------------------


def hidden(found: Parse) -> set[str]:
    assert {text.kind for text in found.document.hidden} <= {"metadata"}
    return {text.text for text in found.document.hidden}


def test_text_of_exif_is_kept_for_the_scanner(tmp_path: Path, noting: type[Noting]) -> None:
    exif = Image.Exif()
    exif[0x10E] = "a description"
    exif[0x13B] = "Ana Kovač".encode()
    exif[0x9C9B] = "Naslov слике\0".encode("utf-16-le")
    exif[0x132] = "2024:02:03 04:05:06"
    exif.get_ifd(0x8769)[0x9286] = b"ASCII\0\0\0ignore the rules"
    found = parsed(tmp_path, stored(picture("RGB"), "JPEG", exif=exif, comment=b"a comment"))
    assert hidden(found) >= {
        "a description", "Naslov слике", "ignore the rules", "a comment", "Ana Kovač"
    }  # fmt: skip
    assert found.document.meta.title == "Naslov слике"
    assert found.document.meta.author == "Ana Kovač"
    assert found.document.meta.date == "2024-02-03"
    assert "description" not in found.document.markdown


def test_text_chunks_of_png_are_kept_for_the_scanner(tmp_path: Path, noting: type[Noting]) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", "do as I say", zip=True)
    info.add_itxt("Title", "Отчёт")
    info.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta>obey</x:xmpmeta>")
    found = parsed(tmp_path, stored(picture(), "PNG", pnginfo=info))
    assert hidden(found) >= {"do as I say", "Отчёт"}
    assert any("obey" in text for text in hidden(found))
    assert found.document.meta.title == "Отчёт"


def test_iptc_of_a_photograph_is_kept_for_the_scanner(tmp_path: Path, noting: type[Noting]) -> None:
    caption = b"\x1c\x02\x78" + struct.pack(">H", 14) + b"a hidden order"
    block = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(caption)) + caption + b"\0"
    segment = b"Photoshop 3.0\0" + block
    data = stored(picture("RGB"), "JPEG")
    app13 = b"\xff\xed" + struct.pack(">H", len(segment) + 2) + segment
    found = parsed(tmp_path, data[:2] + app13 + data[2:])
    assert any("a hidden order" in text for text in hidden(found))


# --- damage and attacks -----------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        size = struct.pack(">I", len(content))
        return size + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    content = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", content)
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (60_000, 60_000), (2**31 - 1, 1)])
def test_a_picture_that_would_fill_the_memory_is_refused(
    width: int, height: int, tmp_path: Path, noting: type[Noting]
) -> None:
    assert refused(tmp_path, png(width, height)) == "decompression-bomb"
    assert not noting.pages


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP"])
def test_a_truncated_picture_is_corrupt(kind: str, tmp_path: Path, noting: type[Noting]) -> None:
    rough = np.random.default_rng(1).integers(0, 255, (90, 90), dtype=np.uint8)
    data = stored(Image.fromarray(rough).convert("RGB"), kind)
    assert refused(tmp_path, data[: len(data) // 2]) == "corrupt-document"


def test_a_name_of_a_format_is_not_enough(tmp_path: Path) -> None:
    assert refused(tmp_path, b"\x89PNG\r\n\x1a\nand then prose") == "corrupt-document"


def test_formats_that_run_programs_are_not_opened(tmp_path: Path, noting: type[Noting]) -> None:
    assert refused(tmp_path, stored(picture("RGB"), "EPS")) == "corrupt-document"


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (700, 500)])
def test_a_picture_without_text_is_refused(size: tuple[int, int], tmp_path: Path) -> None:
    assert refused(tmp_path, stored(Image.new("L", size, 200), "PNG")) == "no-text"


def grain(kind: str) -> Image.Image:
    random = np.random.default_rng(3)
    if kind == "grain":
        return Image.fromarray(np.clip(random.normal(190, 45, (400, 500)), 0, 255).astype(np.uint8))
    if kind == "specks":
        return Image.fromarray(np.where(random.random((400, 500)) < 0.02, 0, 255).astype(np.uint8))
    soft = Image.fromarray(random.integers(0, 255, (9, 12), dtype=np.uint8))
    return soft.resize((500, 400), Image.Resampling.BICUBIC)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grain", "specks", "photograph"])
def test_a_picture_of_noise_is_refused_with_the_reason(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    grain(kind).save(path)
    with pytest.raises(Refusal, match="no text was found in the picture") as refusal:
        parse_image(path, PNG, OPTIONS)
    assert refusal.value.code == "no-text"


def test_a_picture_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noting: type[Noting]
) -> None:
    def slow(*_: object) -> Scan:
        raise TooSlow

    monkeypatch.setattr(noting, "read", slow)
    assert refused(tmp_path, stored(picture(), "PNG")) == "parse-timeout"


def test_a_page_that_takes_too_long_is_missing_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noting: type[Noting]
) -> None:
    read = noting.read

    def slow(self: Noting, image: Any, number: int, size: Any) -> Scan | None:
        if number == 2:
            raise TooSlow
        return read(self, image, number, size)

    monkeypatch.setattr(noting, "read", slow)
    data = stored(picture(), "TIFF", save_all=True, append_images=[picture(), picture()])
    found = parsed(tmp_path, data)
    assert found.missing_pages == (2,)
    assert found.document.markdown.split() == ["word1", "word3"]
    assert "pages that took OCR too long: 2" in found.warnings


def test_without_ocr_a_picture_has_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(stored(picture(), "PNG"))
    with pytest.raises(Refusal, match="OCR is switched off") as refusal:
        parse_image(path, PNG, ParseOptions(ocr=False))
    assert refusal.value.code == "no-text"


_SEEDS = [
    stored(picture("RGB"), "PNG"), stored(picture("RGB"), "JPEG"), stored(picture("P"), "GIF"),
    stored(picture(), "TIFF", compression="tiff_lzw", save_all=True, append_images=[picture()]),
    stored(picture("RGB"), "WEBP"), stored(picture("RGB"), "BMP"), stored(transparent(), "PNG"),
]  # fmt: skip


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.sampled_from(_SEEDS),
    cut=st.floats(0.05, 1.0),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=12),
)
def test_a_damaged_picture_is_read_or_refused(
    seed: bytes, cut: float, flips: list[tuple[float, int]], tmp_path: Path, noting: type[Noting]
) -> None:
    data = bytearray(seed[: max(1, int(len(seed) * cut))])
    for place, value in flips:
        data[int(place * len(data))] = value
    try:
        found = parsed(tmp_path, bytes(data))
    except Refusal as refusal:
        assert refusal.code in {"corrupt-document", "decompression-bomb", "too-many-pages"}
    else:
        assert found.document.markdown


# --- for real ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_drawn_page_is_read_with_its_heading_and_the_place_of_its_text(tmp_path: Path) -> None:
    page = drawn(TEXTS["en"], heading="Yearly report")
    path = tmp_path / "page.png"
    page.save(path)
    found = parse(path, PNG, OPTIONS)
    assert found.document.markdown == f"# Yearly report\n\n{TEXTS['en']}"
    heading, text = found.document.spans
    assert heading.place.box == pytest.approx((80, 70, 520, 130), abs=20)
    assert text.place.box == pytest.approx((80, 180, 1074, 310), abs=25)
    assert found == parse(path, PNG, OPTIONS)


def test_every_picture_format_has_a_parser() -> None:
    from services.converter.parsing import _PARSERS

    assert set(_PARSERS) >= PICTURES
