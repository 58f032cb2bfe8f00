"""PDFs that were cut off or damaged: what is left of them is read, what is gone is told."""

import io
import zlib
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from kernel.errors import Refusal
from services.converter.parsing.pdf import parse_pdf
from services.converter.parsing.pdf_salvage import salvage
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions(ocr=False, max_pages=50)
SENTENCE = "The council shall publish its yearly report before the end of March, page"


def pages(count: int) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=0, invariant=1)
    for number in range(1, count + 1):
        for line in range(12):
            canvas.drawString(72, 720 - 20 * line, f"{SENTENCE} {number} line {line}.")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def packed(count: int) -> bytes:
    """Pages, tree and catalogue in one object stream, as most programs of today write them."""
    bodies = {1: "<</Type/Catalog/Pages 2 0 R>>"}
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(count))
    bodies[2] = f"<</Type/Pages/Kids[{kids}]/Count {count}/MediaBox[0 0 595 842]>>"
    bodies[3] = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    contents: list[tuple[int, bytes]] = []
    for n in range(count):
        bodies[10 + 2 * n] = (
            f"<</Type/Page/Parent 2 0 R/Contents {11 + 2 * n} 0 R/Resources<</Font<</F 3 0 R>>>>>>"
        )
        lines = "".join(f"({SENTENCE} {n + 1} line {k}.) Tj 0 -20 Td " for k in range(12))
        text = f"BT /F 14 Tf 40 700 Td {lines} ET"
        contents.append((11 + 2 * n, zlib.compress(text.encode())))
    index, offset = [], 0
    for number, body in bodies.items():
        index.append(f"{number} {offset}")
        offset += len(body) + 1
    head = " ".join(index) + " "
    stream = zlib.compress((head + "\n".join(bodies.values())).encode())
    out = b"%PDF-1.5\n"
    out += (
        b"5 0 obj\n<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>\nstream\n"
        % (len(bodies), len(head), len(stream))
        + stream
        + b"\nendstream\nendobj\n"
    )
    for number, data in contents:
        out += b"%d 0 obj\n<</Filter/FlateDecode/Length %d>>\nstream\n" % (number, len(data))
        out += data + b"\nendstream\nendobj\n"
    return out


def parsed(folder: Path, data: bytes) -> Parse:
    path = folder / "a.pdf"
    path.write_bytes(data)
    return parse_pdf(path, OPTIONS)


def kept(parse: Parse) -> set[int]:
    """Numbers of the pages whose text is there to its last line."""
    return {n for n in range(1, 40) if f"page {n} line 11." in parse.document.markdown}


def test_a_file_without_its_end_is_read_whole(tmp_path: Path) -> None:
    data = pages(6)
    found = parsed(tmp_path, data[: data.rindex(b"\nxref\n")])
    assert kept(found) == {1, 2, 3, 4, 5, 6}
    assert found.missing_pages == ()
    assert "the file is damaged and was put together anew; no page lost" in found.warnings


def test_the_pages_before_the_cut_are_read_and_the_others_are_missing(tmp_path: Path) -> None:
    data = pages(6)
    # reportlab writes all pages first, then what stands on them.
    streams = [at for at in range(len(data)) if data.startswith(b"stream\n", at)]
    whole = [at for at in streams if not data[:at].endswith(b"end")]
    found = parsed(tmp_path, data[: whole[3] + 200])
    assert kept(found) == {1, 2, 3}
    assert found.missing_pages == (4, 5, 6)
    assert found.document.meta.pages == 6
    assert f"{SENTENCE} 4 line 0." in found.document.markdown
    assert any("pages that are gone or not whole: 4-6" in note for note in found.warnings)


def test_each_page_keeps_its_number(tmp_path: Path) -> None:
    data = pages(6)
    streams = [at for at in range(len(data)) if data.startswith(b"stream\n", at)]
    whole = [at for at in streams if not data[:at].endswith(b"end")]
    found = parsed(tmp_path, data[: whole[3]])
    places = {span.place.page for span in found.document.spans}
    assert places == {1, 2, 3}


def test_pages_in_object_streams_are_found(tmp_path: Path) -> None:
    found = parsed(tmp_path, packed(4))
    assert kept(found) == {1, 2, 3, 4}
    assert found.missing_pages == ()


def test_what_stood_behind_an_object_stream_is_missing(tmp_path: Path) -> None:
    data = packed(4)
    found = parsed(tmp_path, data[: data.index(b"15 0 obj")])
    assert kept(found) == {1, 2}
    assert found.missing_pages == (3, 4)


def test_a_changed_object_counts_as_it_was_changed() -> None:
    data = (
        packed(1) + b"11 0 obj\n<</Length 40>>\nstream\nBT /F 14 Tf 72 700 Td (changed now) Tj ET\n"
    )
    found = salvage(data, 10)
    assert found is not None
    (page,) = pdfium.PdfDocument(data + found.end)
    assert "changed now" in page.get_textpage().get_text_range()


@pytest.mark.parametrize("data", [b"%PDF-1.4\n", b"%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\n"])
def test_a_file_without_pages_is_corrupt(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refusal:
        parsed(tmp_path, data)
    assert refusal.value.code == "corrupt-document"


def test_a_cut_file_of_which_no_text_is_left_is_corrupt(tmp_path: Path) -> None:
    data = pages(2)
    first = data.index(b"stream\n")
    with pytest.raises(Refusal) as refusal:
        parsed(tmp_path, data[:first])
    assert refusal.value.code == "corrupt-document"
    assert "no text is left" in refusal.value.reason


def test_more_pages_than_may_be_are_not_made_up() -> None:
    data = (
        b"%PDF-1.4\n1 0 obj\n<</Type/Page>>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Count 999999999>>\nendobj\n"
    )
    found = salvage(data, 50)
    assert found is not None
    assert len(pdfium.PdfDocument(data + found.end)) <= 51


def test_a_tree_that_bites_its_tail_ends() -> None:
    data = (
        b"%PDF-1.4\n1 0 obj\n<</Type/Pages/Kids[1 0 R 2 0 R]/Count 2>>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Kids[1 0 R 3 0 R]/Count 1>>\nendobj\n"
        b"3 0 obj\n<</Type/Page/Parent 3 0 R>>\nendobj\n"
    )
    found = salvage(data, 50)
    assert found is not None
    assert len(pdfium.PdfDocument(data + found.end)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"1 0 obj " * 60_000, b"stream\n" * 60_000, b"/Type/ObjStm" * 40_000,
        b"1 0 obj stream\n" * 40_000, b"<</Kids[" * 60_000,
        b"".join(b"%d 0 obj<</Type/Pages/Kids[%d 0 R]>>endobj\n" % (n, n + 1) for n in range(9000)),
    ],
)  # fmt: skip
def test_crafted_bytes_take_no_time_by_the_square(data: bytes) -> None:
    salvage(b"%PDF-1.4\n" + data + b"\n9999999 0 obj<</Type/Page>>endobj", 50)


_WHOLE = (pages(3), packed(3))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.sampled_from(_WHOLE),
    cut=st.floats(0.02, 1.0),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=20),
)
def test_a_damaged_file_is_put_together_or_given_up(
    seed: bytes, cut: float, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(seed[: max(16, int(len(seed) * cut))])
    for place, value in flips:
        data[int(place * len(data))] = value
    found = salvage(bytes(data), 50)
    if found is not None:
        assert len(found.end) < 20 * len(seed)
        assert salvage(bytes(data), 50) == found


def objects(count: int, body: bytes) -> bytes:
    return b"%PDF-1.4\n" + b"".join(b"%d 0 obj %b\n" % (n, body) for n in range(1, count + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"<<>>",
        b"<<>>stream\n endstream",
        b"<</Length 2>>stream\n endstream",
        b"/Type/ObjStm/N 1/First 1 endobj",
    ],
)
def test_a_large_file_of_objects_without_an_end_is_read_once(body: bytes) -> None:
    # Reading on to the end of the file from each of them takes an hour.
    assert salvage(objects(400_000, body), 10) is None


@pytest.mark.parametrize(
    "told", [b"/Count %b", b"/Length %b", b"%b 0 R", b"/Parent %b 0 R", b"/N %b/First %b", b"%b"]
)
@pytest.mark.parametrize("digits", [b"9" * 11, b"9" * 5000, b"9" * 300_000])
def test_numbers_of_any_length_are_no_crash(told: bytes, digits: bytes) -> None:
    head = told.replace(b"%b", digits)
    data = b"%PDF-1.4\n" + b"".join(
        b"%d 0 obj <</Type/%b %b>>stream\nendstream endobj\n" % (number, kind, head)
        for number, kind in enumerate([b"Page", b"Pages", b"ObjStm/FlateDecode"], 1)
    )
    assert salvage(data, 10) is not None


def test_brackets_that_never_close_are_read_once() -> None:
    data = b"%PDF-1.4\n1 0 obj <</Type/Page " + b"/P[" * 500_000 + b">> endobj"
    assert salvage(data, 10) is not None


def test_objects_that_claim_the_same_bytes_are_bounded() -> None:
    """Each of them is the whole stream again."""
    count, filler = 4000, b"<" * 2_000_000
    head = b" ".join(b"%d %d" % (10 + n, len(filler) if n % 2 else 0) for n in range(count))
    stream = zlib.compress(head + filler)
    data = b"%%PDF-1.5\n1 0 obj <</Type/Page>> endobj\n2 0 obj <</Type/ObjStm/N %d/First %d" % (
        count, len(head),
    )  # fmt: skip
    data += b"/Filter/FlateDecode>>stream\n" + stream + b"\nendstream endobj\n"
    found = salvage(data, 10)
    assert found is not None
    assert len(found.end) < 300_000_000


def test_an_empty_file_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        parsed(tmp_path, b"")
    assert refused.value.code == "corrupt-document"
