"""The parse cell: real documents through the real child, and a child that is as bad as can be."""

import asyncio
import fcntl
import io
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from kernel.blobs import Blobs
from kernel.errors import Refusal, Retry
from kernel.large import LARGE_BYTES
from kernel.media import CSV, DOCX, HTML, MARKDOWN, OLE_MAGIC, PDF, PLAIN, SUPPORTED
from services.converter import cell as cell_module
from services.converter.cell import ParseCell
from services.converter.language import Policy
from services.converter.outcome import ParseOutcome
from services.converter.settings import ConverterSettings

HOSTILE = "tests.integration.hostile_child"
MALFORMED = Path(__file__).parents[2] / "../shared/evaldata/parsing/malformed"
SMALL = ConverterSettings(wall_seconds=60, memory_mib=512)
SHORT = ConverterSettings(wall_seconds=3)
PARAGRAPH = "The committee will publish its report before the end of the month, and not later."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cell() -> AsyncIterator[ParseCell]:
    async with ParseCell(ConverterSettings(wall_seconds=120, max_pages=40)) as running:
        yield running


@pytest_asyncio.fixture
async def bad_cell() -> AsyncIterator[ParseCell]:
    async with ParseCell(SMALL, module=HOSTILE) as running:
        yield running


def file(folder: Path, content: str | bytes, name: str = "a") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


async def order(cell: ParseCell, folder: Path, text: str) -> ParseOutcome:
    return await cell.parse(file(folder, text, text[:8].replace("/", "")), PLAIN)


async def refusal(cell: ParseCell, path: Path, media_type: str = PLAIN) -> str:
    with pytest.raises(Refusal) as refused:
        await cell.parse(path, media_type)
    return refused.value.code


# --- a document costs itself only -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hog x", "parse-memory"), ("segfault x", "parse-crash"), ("exit 0", "parse-crash"),
        ("exit 7", "parse-crash"),
        ("killed x", "parse-memory"), ("raise x", "parse-crash"), ("recurse x", "too-deep"),
    ],
)  # fmt: skip
async def test_the_next_document_goes_through(
    bad_cell: ParseCell, tmp_path: Path, text: str, code: str
) -> None:
    assert await refusal(bad_cell, file(tmp_path, text)) == code
    assert (await order(bad_cell, tmp_path, "echo fine")).document.markdown == "fine"


@pytest.mark.parametrize("text", ["loop x", "sleep x"])
async def test_an_endless_document_is_given_up(tmp_path: Path, text: str) -> None:
    async with ParseCell(SHORT, module=HOSTILE) as cell:
        assert await refusal(cell, file(tmp_path, text)) == "parse-timeout"
        assert (await order(cell, tmp_path, "echo fine")).document.markdown == "fine"


async def test_a_long_document_that_advances_is_waited_for(tmp_path: Path) -> None:
    settings = ConverterSettings(wall_seconds=10, cpu_seconds=3)
    async with ParseCell(settings, module=HOSTILE) as cell:
        outcome = await order(cell, tmp_path, "advance 10 1.2")
    assert outcome.document.markdown == "10 1.2"


async def test_a_document_that_only_ever_advances_is_given_up(tmp_path: Path) -> None:
    settings = ConverterSettings(wall_seconds=20, total_seconds=5)
    async with ParseCell(settings, module=HOSTILE) as cell:
        assert await refusal(cell, file(tmp_path, "advance 500 1.2")) == "parse-timeout"
        assert (await order(cell, tmp_path, "echo fine")).document.markdown == "fine"


async def test_processor_time_is_limited(tmp_path: Path) -> None:
    settings = ConverterSettings(wall_seconds=60, cpu_seconds=1)
    async with ParseCell(settings, module=HOSTILE) as cell:
        assert await refusal(cell, file(tmp_path, "loop x")) == "parse-timeout"


async def test_the_programs_that_a_document_starts_count(
    bad_cell: ParseCell, tmp_path: Path
) -> None:
    assert await refusal(bad_cell, file(tmp_path, "programs 3 250000000")) == "parse-memory"


async def test_a_short_document_does_not_make_us_look_through_all_processes(
    bad_cell: ParseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await order(bad_cell, tmp_path, "echo warm")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("every process of the machine was read")

    monkeypatch.setattr("services.converter.process._PROGRAMS_SECONDS", 60)
    monkeypatch.setattr(psutil.Process, "children", never)
    assert (await order(bad_cell, tmp_path, "echo fine")).document.markdown == "fine"


async def test_a_reason_never_quotes_the_document(bad_cell: ParseCell, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        await order(bad_cell, tmp_path, "raise x")
    assert "text of the document" not in refused.value.reason
    assert "ValueError" in refused.value.reason


async def test_what_a_library_prints_is_no_answer(bad_cell: ParseCell, tmp_path: Path) -> None:
    path = file(tmp_path, "print " + "x" * 100)
    assert (await bad_cell.parse(path, PLAIN)).document.markdown == "x" * 100


async def test_the_child_knows_no_secrets(
    bad_cell: ParseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_POSTGRES_URL", "postgres://secret")
    environ = (await order(bad_cell, tmp_path, "environ x")).document.markdown
    assert "secret" not in environ
    assert "PATH" in environ


async def test_an_innocent_document_gets_a_fresh_child(bad_cell: ParseCell, tmp_path: Path) -> None:
    first = await order(bad_cell, tmp_path, "echo a")
    psutil.Process(int(first.document.meta.title)).kill()
    second = await order(bad_cell, tmp_path, "echo b")
    assert second.document.markdown == "b"
    assert second.document.meta.title != first.document.meta.title


async def test_a_warm_child_is_kept_and_replaced_in_time(tmp_path: Path) -> None:
    settings = ConverterSettings(recycle_after=2)
    async with ParseCell(settings, module=HOSTILE) as cell:
        pids = [(await order(cell, tmp_path, f"echo {n}")).document.meta.title for n in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_a_child_that_has_grown_is_replaced(tmp_path: Path) -> None:
    settings = ConverterSettings(recycle_mib=200)
    async with ParseCell(settings, module=HOSTILE) as cell:
        first = await order(cell, tmp_path, f"grow {300 * 1024 * 1024}")
        second = await order(cell, tmp_path, "echo x")
    assert first.document.meta.title != second.document.meta.title


async def test_two_calls_queue(bad_cell: ParseCell, tmp_path: Path) -> None:
    paths = [file(tmp_path, f"echo {n}", f"f{n}") for n in range(5)]
    outcomes = await asyncio.gather(*(bad_cell.parse(path, PLAIN) for path in paths))
    assert [o.document.markdown for o in outcomes] == ["0", "1", "2", "3", "4"]
    assert len({o.document.meta.title for o in outcomes}) == 1


async def test_a_cancelled_call_leaves_no_process(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    async with ParseCell(ConverterSettings(), module=HOSTILE) as cell:
        await order(cell, tmp_path, "echo x")
        call = asyncio.create_task(cell.parse(file(tmp_path, "sleep x"), PLAIN))
        await asyncio.wait({call}, timeout=0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await order(cell, tmp_path, "echo fine")).document.markdown == "fine"
    after = {child.pid for child in psutil.Process().children()}
    assert after <= before


async def test_a_waiting_call_can_be_cancelled_without_harm(
    bad_cell: ParseCell, tmp_path: Path
) -> None:
    first = asyncio.create_task(bad_cell.parse(file(tmp_path, "echo first", "one"), PLAIN))
    second = asyncio.create_task(bad_cell.parse(file(tmp_path, "echo second", "two"), PLAIN))
    await asyncio.sleep(0)
    second.cancel()
    assert (await first).document.markdown == "first"


# --- a large document keeps no small one waiting --------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_module, "_PATIENCE_SECONDS", 0.2)


def large(folder: Path, order: str, name: str) -> Path:
    return file(folder, f"{order} ".ljust(LARGE_BYTES + 1), name)


@pytest.mark.usefixtures("impatient")
async def test_a_small_document_passes_a_large_one(bad_cell: ParseCell, tmp_path: Path) -> None:
    slow = asyncio.create_task(bad_cell.parse(large(tmp_path, "sleep", "slow"), PLAIN))
    await asyncio.sleep(0)
    for number in range(3):
        done = await order(bad_cell, tmp_path, f"echo {number}")
        assert done.document.markdown == str(number)
    assert not slow.done()
    with pytest.raises(Retry, match="another large document"):
        await bad_cell.parse(large(tmp_path, "echo", "other"), PLAIN)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await bad_cell.parse(large(tmp_path, "echo", "other"), PLAIN)).head.meta.title


@pytest.mark.usefixtures("impatient")
async def test_the_second_child_ends_with_its_work(bad_cell: ParseCell, tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    slow = asyncio.create_task(bad_cell.parse(file(tmp_path, "sleep x", "slow"), PLAIN))
    await asyncio.sleep(0)
    await order(bad_cell, tmp_path, "echo x")
    assert len(set(psutil.Process().children()) - before) == 2
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert set(psutil.Process().children()) <= before


async def test_of_those_who_wait_together_no_one_waits_for_the_next_long_one(
    bad_cell: ParseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_module, "_PATIENCE_SECONDS", 2)
    first = asyncio.create_task(order(bad_cell, tmp_path, "advance 1 0.5"))
    await asyncio.sleep(0)
    long = asyncio.create_task(bad_cell.parse(file(tmp_path, "sleep x", "long"), PLAIN))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        assert (await order(bad_cell, tmp_path, "echo x")).document.markdown == "x"
    assert first.done()
    assert not long.done()
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long


async def test_small_documents_share_one_child(bad_cell: ParseCell, tmp_path: Path) -> None:
    calls = (order(bad_cell, tmp_path, f"echo {n}") for n in range(9))
    assert len({done.head.meta.title for done in await asyncio.gather(*calls)}) == 1


async def test_a_large_document_is_never_held_beside_its_child(tmp_path: Path) -> None:
    row = "plain words of a cell,2024-01-15,3.25\n"
    path = file(tmp_path, "text,day,price\n" + row * 1_500_000)
    blobs = Blobs(str(tmp_path / "blobs"))
    async with ParseCell(ConverterSettings()) as cell:
        await cell.parse(file(tmp_path, "a,b\nc,d\n", "small"), CSV)
        tracemalloc.start()
        try:
            with await cell.parse(path, CSV, Policy()) as parse:
                name = await blobs.put_parts(parse.to_bytes())
            async with blobs.local_path(name) as stored:
                outcome = await cell.canonical(stored, "x")
            with outcome:
                body = await blobs.put_parts(outcome.to_bytes())
                await blobs.put_parts(outcome.places(body))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert await blobs.size(body) == outcome.size_bytes > 60_000_000
    assert peak < 40_000_000


async def test_what_needs_no_parser_is_refused_without_one(tmp_path: Path) -> None:
    settings = ConverterSettings(max_file_mib=1)
    async with ParseCell(settings, module="no.such.module") as cell:
        assert await refusal(cell, file(tmp_path, "")) == "empty-document"
        assert await refusal(cell, file(tmp_path, bytes(2_000_000))) == "too-large"
        assert await refusal(cell, file(tmp_path, "x"), "video/mp4") == "unsupported-media-type"


async def test_a_parser_that_cannot_start_is_no_documents_fault(tmp_path: Path) -> None:
    async with ParseCell(ConverterSettings(), module="no.such.module") as cell:
        with pytest.raises(Retry, match="cannot start: it ended with 1"):
            await cell.parse(file(tmp_path, "x"), PLAIN)


async def test_a_full_disk_is_no_documents_fault(bad_cell: ParseCell, tmp_path: Path) -> None:
    with pytest.raises(Retry, match="the disk is full; temporary folder"):
        await order(bad_cell, tmp_path, "full")
    assert (await order(bad_cell, tmp_path, "echo fine")).document.markdown == "fine"


async def test_without_a_temporary_folder_there_is_another_try(
    bad_cell: ParseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    monkeypatch.setenv("TMPDIR", str(folder))
    with pytest.raises(Retry):
        await order(bad_cell, tmp_path, "echo x")
    folder.mkdir()
    await order(bad_cell, tmp_path, "echo x")
    # A system that cleans up takes it from a child that has had nothing to do for days.
    (home,) = folder.iterdir()
    shutil.rmtree(home)
    with pytest.raises(Retry):
        await order(bad_cell, tmp_path, "echo x")
    assert (await order(bad_cell, tmp_path, "echo fine")).document.markdown == "fine"
    await bad_cell.close()
    assert not list(folder.iterdir())


async def test_what_a_killed_service_left_is_removed(
    bad_cell: ParseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    left, used = (tmp_path / f"kb-child-{name}" for name in ("left", "used"))
    for folder in (left, used):
        folder.mkdir()
        file(folder, "a parse", "answer")
    lock = os.open(used, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    await order(bad_cell, tmp_path, "echo x")
    os.close(lock)
    assert (left.exists(), used.exists()) == (False, True)


# --- the real child ---------------------------------------------------------------------------


def docx(folder: Path) -> Path:
    from docx import Document

    document = Document()
    document.core_properties.title = "Annual report"
    document.core_properties.author = "A. Author"
    document.add_heading("Report", 0)
    document.add_heading("Scope", 1)
    document.add_paragraph(PARAGRAPH)
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(2, 2)
    for number, cell in enumerate(c for row in table.rows for c in row.cells):
        cell.text = f"c{number}"
    hidden = document.add_paragraph("").add_run("secret order")
    hidden.font.hidden = True
    document.save(str(folder / "a.docx"))
    return folder / "a.docx"


def pdf(folder: Path, *, pages: int = 1) -> Path:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(folder / "a.pdf"), pagesize=A4, invariant=True)
    for number in range(pages):
        canvas.setFont("Helvetica", 8)
        canvas.drawString(60, 815, "Annual report of the committee")
        canvas.drawRightString(530, 30, str(number + 1))
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(60, 760, f"Chapter {number + 1}")
        canvas.setFont("Helvetica", 11)
        for line in range(12):
            canvas.drawString(60, 730 - 14 * line, PARAGRAPH)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(60, 300, "secret order")
        canvas.setFillColorRGB(0, 0, 0)
        canvas.showPage()
    canvas.save()
    return folder / "a.pdf"


HTML_PAGE = f"""<html lang=en><head><title>A page</title><style>.x{{display:none}}</style></head>
<body><nav><a href=/>Home</a></nav><main><h1>Head</h1><p>{PARAGRAPH} H<sub>2</sub>O</p>
<p class=x>secret order</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<ul><li>one</li><li>two</li></ul><pre>x = 1\ny = 2</pre></main></body></html>"""


@pytest.mark.asyncio(loop_scope="module")
async def test_html_keeps_structure_and_loses_furniture(cell: ParseCell, tmp_path: Path) -> None:
    document = (await cell.parse(file(tmp_path, HTML_PAGE), HTML)).document
    for part in ("# Head", "H2O", "| a | b |", "| 1 | 2 |", "- one", "```\nx = 1\ny = 2\n```"):
        assert part in document.markdown
    assert "Home" not in document.markdown
    assert "secret" not in document.markdown
    assert [h.text for h in document.hidden if h.kind == "invisible-style"] == ["secret order"]


@pytest.mark.asyncio(loop_scope="module")
async def test_docx_keeps_structure_and_properties(cell: ParseCell, tmp_path: Path) -> None:
    document = (await cell.parse(docx(tmp_path), DOCX)).document
    for part in ("Report", "# Scope", PARAGRAPH, "- first", "| c0 | c1 |", "| c2 | c3 |"):
        assert part in document.markdown
    assert (document.meta.title, document.meta.author) == ("Annual report", "A. Author")
    assert "secret" not in document.markdown
    assert "secret order" in [h.text for h in document.hidden]


@pytest.mark.asyncio(loop_scope="module")
async def test_pdf_keeps_structure_and_loses_furniture(cell: ParseCell, tmp_path: Path) -> None:
    outcome = await cell.parse(pdf(tmp_path, pages=3), PDF)
    markdown = outcome.document.markdown
    assert [f"# Chapter {n}" in markdown for n in (1, 2, 3)] == [True] * 3
    assert "Annual report" not in markdown
    assert "secret" not in markdown
    assert outcome.document.meta.pages == 3
    assert ("background-colour", "secret order") in [
        (h.kind, h.text) for h in outcome.document.hidden
    ]
    assert outcome.parser.startswith("docling-")
    assert "+heuristic-" in outcome.parser


@pytest.mark.asyncio(loop_scope="module")
async def test_the_same_bytes_give_the_same_parse(tmp_path: Path) -> None:
    made = [
        (pdf(tmp_path, pages=2), PDF),
        (docx(tmp_path), DOCX),
        (file(tmp_path, HTML_PAGE), HTML),
    ]
    parses = []
    for _ in range(2):
        async with ParseCell(ConverterSettings()) as fresh:
            parses.append([(await fresh.parse(*one)).document.to_bytes() for one in made])
    assert parses[0] == parses[1]


@pytest.mark.asyncio(loop_scope="module")
async def test_every_supported_type_has_a_parser_with_a_name(cell: ParseCell) -> None:
    names = {cell.parser_for(media_type) for media_type in SUPPORTED}
    assert "none" not in names


# --- bad documents ----------------------------------------------------------------------------


def zipped(folder: Path, document: bytes) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", document)
    return file(folder, buffer.getvalue(), "bad.docx")


def laughing() -> bytes:
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    return f"<!DOCTYPE d [{entities}]><d>&a9;</d>".encode()


@pytest.mark.asyncio(loop_scope="module")
async def test_bad_docx_files_get_their_codes(cell: ParseCell, tmp_path: Path) -> None:
    good = docx(tmp_path).read_bytes()
    assert await refusal(cell, zipped(tmp_path, bytes(300_000_000)), DOCX) == "decompression-bomb"
    assert await refusal(cell, zipped(tmp_path, laughing()), DOCX) == "corrupt-document"
    assert await refusal(cell, zipped(tmp_path, b"<d>" * 999), DOCX) in {
        "too-deep", "corrupt-document",
    }  # fmt: skip
    assert await refusal(cell, file(tmp_path, good[: len(good) // 2]), DOCX) == "corrupt-document"
    assert await refusal(cell, file(tmp_path, OLE_MAGIC + bytes(99)), DOCX) == "encrypted-document"
    assert (await cell.parse(docx(tmp_path), DOCX)).document.markdown


@pytest.mark.asyncio(loop_scope="module")
async def test_bad_pdfs_get_their_codes(cell: ParseCell, tmp_path: Path) -> None:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    locked = Canvas(str(tmp_path / "locked.pdf"), encrypt=StandardEncryption("secret"))
    locked.drawString(100, 100, "x")
    locked.save()
    assert await refusal(cell, tmp_path / "locked.pdf", PDF) == "encrypted-document"
    assert await refusal(cell, pdf(tmp_path, pages=41), PDF) == "too-many-pages"
    good = pdf(tmp_path).read_bytes()
    assert await refusal(cell, file(tmp_path, good[:300]), PDF) == "corrupt-document"
    assert await refusal(cell, file(tmp_path, b"%PDF-1.7\n" + b"\0" * 5000), PDF) == (
        "corrupt-document"
    )
    assert (await cell.parse(pdf(tmp_path), PDF)).document.markdown


@pytest.mark.asyncio(loop_scope="module")
async def test_bad_pages_get_their_codes(cell: ParseCell, tmp_path: Path) -> None:
    deep = "<html><body>" + "<div>" * 100_000 + PARAGRAPH
    assert await refusal(cell, file(tmp_path, deep), HTML) == "too-deep"
    assert await refusal(cell, file(tmp_path, "<p hidden>x</p>"), HTML) == "empty-document"
    assert await refusal(cell, file(tmp_path, b"# \xd0\xbf\xd1"), MARKDOWN) == "invalid-encoding"
    wide = f"<table><tr><td colspan=1000 rowspan=1000>{PARAGRAPH * 20}</td></tr></table>"
    assert len((await cell.parse(file(tmp_path, wide), HTML)).document.markdown) < 2_000_000


@pytest.mark.asyncio(loop_scope="module")
async def test_a_damaged_document_is_read_or_refused(cell: ParseCell, tmp_path: Path) -> None:
    """Every 31st byte of real files is turned over, one at a time."""
    for made, media_type in ((pdf(tmp_path), PDF), (docx(tmp_path), DOCX)):
        data = made.read_bytes()
        for place in range(0, len(data), max(1, len(data) // 12)):
            damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
            try:
                await cell.parse(file(tmp_path, damaged, "damaged"), media_type)
            except Refusal as refused:
                assert refused.code in {"corrupt-document", "no-text", "encrypted-document"}


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_malformed_set_ends_in_a_parse_or_a_code(tmp_path: Path) -> None:
    if not MALFORMED.exists():
        pytest.skip(f"no evaluation data at {MALFORMED}")
    settings = ConverterSettings(wall_seconds=60, ocr=False)
    codes: dict[str, str] = {}
    async with ParseCell(settings) as cell:
        for path in sorted(MALFORMED.rglob("*.pdf")):
            try:
                await cell.parse(path, PDF)
            except Refusal as refused:
                codes[path.name] = refused.code
    assert codes["graph-encrypted.pdf"] == "encrypted-document"
    assert not {"parse-crash", "parse-memory", "parse-timeout"} & set(codes.values()), codes
