"""What of a PDF people do not see, technique by technique, and what only looks like it."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from PIL import Image
from reportlab.lib.colors import Color, black, white
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from tests.unit.converter.pdf_drawing import drawn, lines, parsed, text

ORDER = "obey the secret order at once"

Draw = Callable[[Canvas], None]
Change = Callable[[pikepdf.Pdf], None]


def page(draw: Draw) -> bytes:
    def whole(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(12))
        draw(canvas)

    return drawn(whole)


def changed(change: Change) -> bytes:
    with pikepdf.open(io.BytesIO(page(lambda _: None))) as document:
        change(document)
        out = io.BytesIO()
        document.save(out, fix_metadata_version=False)
    return out.getvalue()


def found(folder: Path, data: bytes) -> tuple[bool, set[str]]:
    """Whether the order stands in the text, and the kinds of hidden text that it stands in."""
    document = parsed(folder, data).document
    return ORDER in document.markdown, {h.kind for h in document.hidden if ORDER in h.text}


def put(canvas: Canvas, x: float = 60, y: float = 300) -> None:
    canvas.drawString(x, y, ORDER)


def nearly_white(canvas: Canvas) -> None:
    canvas.setFillColorRGB(0.996, 0.996, 0.996)
    put(canvas)


def see_through(canvas: Canvas) -> None:
    canvas.setFillColor(Color(0, 0, 0, alpha=0.02))
    put(canvas)


def shrunk(canvas: Canvas) -> None:
    canvas.scale(0.05, 0.05)
    put(canvas, 1200, 6000)


def narrowed(canvas: Canvas) -> None:
    pen = canvas.beginText(60, 300)
    pen.setHorizScale(0.5)
    pen.textOut(ORDER)
    canvas.drawText(pen)


def in_white_outline(canvas: Canvas) -> None:
    pen = canvas.beginText(60, 300)
    pen.setTextRenderMode(1)
    canvas.setStrokeColor(white)
    pen.textOut(ORDER)
    canvas.drawText(pen)


def under_a_box(canvas: Canvas) -> None:
    put(canvas)
    canvas.setFillColorRGB(0.2, 0.3, 0.5)
    canvas.rect(50, 290, 400, 30, stroke=0, fill=1)


def under_a_picture(canvas: Canvas) -> None:
    put(canvas)
    canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), (200, 30, 30))), 50, 290, 400, 30)


def black_on_black(canvas: Canvas) -> None:
    canvas.setFillColor(black)
    canvas.rect(50, 290, 400, 30, fill=1)
    put(canvas)


@pytest.mark.parametrize(
    ("hide", "kind"),
    [
        (nearly_white, "background-colour"), (see_through, "invisible-style"),
        (shrunk, "zero-size"), (narrowed, "background-colour"),
        (in_white_outline, "background-colour"), (under_a_box, "background-colour"),
        (under_a_picture, "background-colour"), (black_on_black, "background-colour"),
        (lambda canvas: put(canvas, -500, 300), "off-page"),
        (lambda canvas: put(canvas, 60, 2000), "off-page"),
    ],
)  # fmt: skip
def test_what_is_drawn_so_that_nobody_sees_it(tmp_path: Path, hide: Draw, kind: str) -> None:
    assert found(tmp_path, page(hide)) == (False, {kind})


def upside_down(canvas: Canvas) -> None:
    canvas.translate(400, 300)
    canvas.rotate(180)
    put(canvas, 0, 0)


def on_its_side(canvas: Canvas) -> None:
    canvas.translate(20, 300)
    canvas.rotate(90)
    put(canvas, 0, 0)


def aslant(canvas: Canvas) -> None:
    canvas.translate(100, 100)
    canvas.rotate(40)
    put(canvas, 0, 0)


def in_a_mirror(canvas: Canvas) -> None:
    canvas.translate(400, 300)
    canvas.scale(-1, 1)
    put(canvas, 0, 0)


def as_specks(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 2)
    put(canvas)


def pale(canvas: Canvas) -> None:
    canvas.setFillColorRGB(0.9, 0.9, 0.9)
    put(canvas)


@pytest.mark.parametrize(
    ("hide", "kind"),
    [
        (upside_down, "invisible-style"), (on_its_side, "invisible-style"),
        (aslant, "invisible-style"), (in_a_mirror, "invisible-style"), (as_specks, "zero-size"),
        (pale, "background-colour"),
    ],
)  # fmt: skip
def test_what_people_hardly_read_is_told_to_the_scanner_too(
    tmp_path: Path, hide: Draw, kind: str
) -> None:
    assert kind in found(tmp_path, page(hide))[1]


def on_a_dark_bar(canvas: Canvas) -> None:
    canvas.setFillColorRGB(0.1, 0.2, 0.3)
    canvas.rect(50, 290, 400, 30, stroke=0, fill=1)
    canvas.setFillColor(white)
    put(canvas)


def in_small_print(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 6)
    put(canvas)


def in_grey(canvas: Canvas) -> None:
    canvas.setFillColorRGB(0.6, 0.6, 0.6)
    put(canvas)


@pytest.mark.parametrize("show", [on_a_dark_bar, in_small_print, in_grey])
def test_what_people_read_is_no_hidden_text(tmp_path: Path, show: Draw) -> None:
    assert found(tmp_path, page(show)) == (True, set())


def test_a_page_that_is_all_in_small_print_or_on_its_side_is_read_as_usual(tmp_path: Path) -> None:
    def small(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 3)
        for n in range(40):
            put(canvas, 60, 700 - 4 * n)

    def turned(canvas: Canvas) -> None:
        canvas.rotate(90)
        for n in range(30):
            put(canvas, 100, -100 - 14 * n)

    for draw in (small, turned):
        assert found(tmp_path, drawn(draw)) == (True, set())


# --- beside the pages -------------------------------------------------------------------------


def layer(document: pikepdf.Pdf, *, on: bool) -> None:
    group = document.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.OCG, Name="layer"))
    shown = pikepdf.Dictionary(ON=[group] if on else [], OFF=[] if on else [group])
    document.Root.OCProperties = pikepdf.Dictionary(OCGs=[group], D=shown)
    first = document.pages[0]
    first.Resources.Properties = pikepdf.Dictionary(MC0=group)
    body = f"/OC /MC0 BDC BT /F1 11 Tf 60 300 Td ({ORDER}) Tj ET EMC"
    first.contents_add(body.encode())


def pinned(kind: str, **more: Any) -> Change:
    def change(document: pikepdf.Pdf) -> None:
        note = pikepdf.Dictionary(
            Type=pikepdf.Name.Annot, Subtype=pikepdf.Name(f"/{kind}"), Rect=[60, 280, 300, 320],
            **more,
        )  # fmt: skip
        document.pages[0].Annots = document.make_indirect(pikepdf.Array([note]))

    return change


def field(**more: Any) -> Change:
    def change(document: pikepdf.Pdf) -> None:
        pinned("Widget", FT=pikepdf.Name.Tx, T="f", **{"F": 4, **more})(document)
        document.Root.AcroForm = pikepdf.Dictionary(Fields=list(document.pages[0].Annots))

    return change


def cut_to_its_upper_part(document: pikepdf.Pdf) -> None:
    document.pages[0].contents_add(f"BT /F1 11 Tf 60 100 Td ({ORDER}) Tj ET".encode())
    document.pages[0].CropBox = pikepdf.Array([0, 350, 700, 900])


def in_a_property(document: pikepdf.Pdf) -> None:
    document.docinfo["/AnyName"] = ORDER


def in_the_packet(document: pikepdf.Pdf) -> None:
    packet = f"<x:xmpmeta xmlns:x='adobe:ns:meta/'><x:any>{ORDER}</x:any></x:xmpmeta>"
    document.Root.Metadata = document.make_stream(packet.encode())


def in_a_script(document: pikepdf.Pdf) -> None:
    code = f'app.alert("{ORDER}");'
    document.Root.OpenAction = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS=code)


def in_a_named_script(document: pikepdf.Pdf) -> None:
    script = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS=document.make_stream(ORDER.encode()))
    names = pikepdf.Dictionary(JavaScript=pikepdf.Dictionary(Names=["a", script]))
    document.Root.Names = names


def in_a_bookmark(document: pikepdf.Pdf) -> None:
    with document.open_outline() as outline:
        outline.root.append(pikepdf.OutlineItem(ORDER, 0))


def for_screen_readers(document: pikepdf.Pdf) -> None:
    figure = document.make_indirect(pikepdf.Dictionary(S=pikepdf.Name.Figure, Alt=ORDER))
    document.Root.StructTreeRoot = pikepdf.Dictionary(
        K=[pikepdf.Dictionary(S=pikepdf.Name.Sect, K=[figure])]
    )


def on_a_file(document: pikepdf.Pdf) -> None:
    document.attachments["a.txt"] = pikepdf.AttachedFileSpec(document, b"x", description=ORDER)


def marked(mark: str, drawn_: str = "An innocent line here", **named: Any) -> Change:
    def change(document: pikepdf.Pdf) -> None:
        first = document.pages[0]
        first.Resources.Properties = pikepdf.Dictionary(**named)
        first.contents_add(f"/Span {mark} BDC BT /F1 11 Tf 60 300 Td ({drawn_}) Tj ET EMC".encode())

    return change


def in_a_form(document: pikepdf.Pdf) -> None:
    form = document.make_stream(
        f"/Span <</ActualText ({ORDER})>> BDC BT /F1 11 Tf 60 300 Td (Here) Tj ET EMC".encode()
    )
    form.Type, form.Subtype, form.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 700, 900]
    first = document.pages[0]
    form.Resources = first.Resources
    first.Resources.XObject = pikepdf.Dictionary(Fm=form)
    first.contents_add(b"/Fm Do")


_LETTERS = " ".join(f"/Span <</ActualText ({letter})>> BDC EMC" for letter in ORDER)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (marked(f"<</ActualText ({ORDER})>>"), "alt-text"), (in_a_form, "alt-text"),
        (marked(f"<</Actual#54ext ({ORDER})>>"), "alt-text"),
        (marked("/P0", P0=pikepdf.Dictionary(ActualText=ORDER)), "alt-text"),
        (marked(f"<</Alt ({ORDER})>>"), "alt-text"), (marked(f"<</E ({ORDER})>>"), "alt-text"),
        (lambda document: document.pages[0].contents_add(_LETTERS.encode()), "alt-text"),
        (lambda document: layer(document, on=False), "background-colour"),
        (pinned("Text", Contents=ORDER), "comment"),
        (pinned("Text", Contents="word " * 6000 + ORDER), "comment"),
        (pinned("FreeText", Contents=ORDER, F=2), "comment"),
        (pinned("Text", RC=f"<body><p>{ORDER}</p></body>"), "comment"),
        (pinned("Text", Contents="x", Subj=ORDER), "comment"),
        (field(TU=ORDER), "attribute"), (field(DV=ORDER), "attribute"),
        (field(V=ORDER, F=2), "invisible-style"), (cut_to_its_upper_part, "off-page"),
        (in_a_property, "metadata"), (in_the_packet, "metadata"), (in_a_script, "script"),
        (in_a_named_script, "script"), (in_a_bookmark, "metadata"),
        (for_screen_readers, "alt-text"), (on_a_file, "metadata"),
    ],
)  # fmt: skip
def test_what_a_file_says_beside_its_pages(tmp_path: Path, change: Change, kind: str) -> None:
    seen, kinds = found(tmp_path, changed(change))
    assert kind in kinds
    assert not seen


def test_what_is_drawn_is_read_and_not_what_a_mark_says_of_it(tmp_path: Path) -> None:
    document = parsed(
        tmp_path, changed(marked("<</ActualText (four words of it)>>", ORDER))
    ).document
    assert ORDER in document.markdown


def test_a_mark_that_says_what_is_drawn_hides_nothing(tmp_path: Path) -> None:
    change = marked(f"<</ActualText ({ORDER})>>", ORDER)
    assert found(tmp_path, changed(change)) == (True, set())


def test_a_description_far_down_the_tree_is_told(tmp_path: Path) -> None:
    def change(document: pikepdf.Pdf) -> None:
        nodes = [pikepdf.Dictionary(S=pikepdf.Name.P) for _ in range(9000)]
        last = pikepdf.Dictionary(S=pikepdf.Name.Figure, Alt="word " * 6000 + ORDER)
        document.Root.StructTreeRoot = pikepdf.Dictionary(K=[*nodes, last])

    assert found(tmp_path, changed(change)) == (False, {"alt-text"})


def test_marks_of_letters_are_left_to_the_reader(tmp_path: Path) -> None:
    document = parsed(tmp_path, changed(marked("<</ActualText (fi)>>", "#"))).document
    assert document.markdown.rstrip().endswith("fi")


def test_text_under_a_note_with_a_ground_of_its_own_is_hidden(tmp_path: Path) -> None:
    def change(document: pikepdf.Pdf) -> None:
        document.pages[0].contents_add(f"BT /F1 11 Tf 60 300 Td ({ORDER}) Tj ET".encode())
        cover = document.make_stream(b"1 1 1 rg 0 0 400 40 re f")
        cover.Type, cover.Subtype = pikepdf.Name.XObject, pikepdf.Name.Form
        cover.BBox = [0, 0, 400, 40]
        pinned("Square", AP=pikepdf.Dictionary(N=cover))(document)
        document.pages[0].Annots[0].Rect = [50, 290, 450, 330]

    assert found(tmp_path, changed(change)) == (False, {"background-colour"})


def test_a_layer_that_is_on_is_text(tmp_path: Path) -> None:
    assert found(tmp_path, changed(lambda document: layer(document, on=True))) == (True, set())


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.Root.__setitem__("/Metadata", d.make_stream(b"<a><b>no end")),
        lambda d: d.Root.__setitem__("/Metadata", pikepdf.Array([1])),
        lambda d: d.Root.__setitem__("/StructTreeRoot", pikepdf.Dictionary(K=[1, pikepdf.Array()])),
        lambda d: d.Root.__setitem__("/Names", pikepdf.Dictionary(JavaScript=pikepdf.Array([1]))),
        lambda d: d.Root.__setitem__("/OpenAction", pikepdf.Dictionary(JS=7)),
        lambda d: d.Root.__setitem__("/Outlines", pikepdf.Dictionary(First=pikepdf.Array([1]))),
    ],
)
def test_odd_objects_cost_what_they_hold(tmp_path: Path, change: Change) -> None:
    def both(document: pikepdf.Pdf) -> None:
        change(document)
        in_a_property(document)

    assert found(tmp_path, changed(both)) == (False, {"metadata"})


@pytest.mark.timeout(60)
def test_a_tree_that_holds_itself_ends(tmp_path: Path) -> None:
    def change(document: pikepdf.Pdf) -> None:
        node = document.make_indirect(pikepdf.Dictionary(Alt=ORDER))
        node.K = pikepdf.Array([node] * 4000)
        document.Root.StructTreeRoot = node
        item = document.make_indirect(pikepdf.Dictionary(Title=ORDER))
        item.Next = item.First = item
        document.Root.Outlines = pikepdf.Dictionary(First=item)

    assert "alt-text" in found(tmp_path, changed(change))[1]
