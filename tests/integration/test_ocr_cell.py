"""Scans and pictures through the real child: its limits hold, its journal says who read what."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from kernel.errors import Refusal
from kernel.media import PDF, PNG, TIFF
from services.converter.cell import ParseCell
from services.converter.parsers import tesseract_version
from services.converter.settings import ConverterSettings
from tests.unit.converter.drawn import TEXTS, drawn, scanned

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cell() -> AsyncIterator[ParseCell]:
    async with ParseCell(ConverterSettings(wall_seconds=240)) as running:
        yield running


def scan_of(folder: Path, *languages: str, quarters: int = 0) -> Path:
    """A PDF of pictures only, a page a language."""
    pages = [
        scanned(drawn(TEXTS[language] * 2, heading=TEXTS[language].split()[0]))
        .rotate(90 * quarters, expand=True)
        .convert("RGB")
        for language in languages
    ]
    path = folder / "scan.pdf"
    pages[0].save(path, "PDF", save_all=True, append_images=pages[1:], resolution=200)
    return path


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scan_in_two_scripts_is_read_page_by_page(cell: ParseCell, tmp_path: Path) -> None:
    if not tesseract_version():
        pytest.skip("NOT TESTED: tesseract is not installed")
    found = await cell.parse(scan_of(tmp_path, "sr-Cyrl", "de"), PDF)
    markdown = found.document.markdown
    assert "Сваки члан добија један" in markdown
    assert "vor Ende März" in markdown
    assert [reading.page for reading in found.head.notes.readings] == [1, 2]
    cyrillic, latin = found.head.notes.readings
    assert cyrillic.engine == "tesseract"
    assert cyrillic.scores["rapidocr"] < 0.2 < 0.8 < cyrillic.scores["tesseract"]
    assert min(latin.scores.values()) > 0.8
    assert {span.place.page for span in found.document.spans} == {1, 2}
    assert any("read by tesseract and rapidocr" in warning for warning in found.head.notes.warnings)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_boxes_of_a_turned_scan_lie_on_the_page_as_it_is_shown(
    cell: ParseCell, tmp_path: Path
) -> None:
    found = await cell.parse(scan_of(tmp_path, "en", quarters=1), PDF)
    assert "Every member receives a copy" in found.document.markdown
    boxes = [span.place.box for span in found.document.spans if span.place.box]
    left, top, right, bottom = max(boxes, key=lambda box: box[3] - box[1])
    # Lines run upwards on the page: its text is higher than wide.
    assert bottom - top > right - left
    assert left > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_picture_is_a_document(cell: ParseCell, tmp_path: Path) -> None:
    path = tmp_path / "page.png"
    scanned(drawn(TEXTS["sl"], heading="Poročilo")).save(path)
    found = await cell.parse(path, PNG)
    assert found.document.markdown.startswith("# Poročilo\n\nSvet objavi")
    assert found.parser == cell.parser_for(PNG)
    assert [reading.page for reading in found.head.notes.readings] == [1]
    again = await cell.parse(path, PNG)
    assert again.document == found.document


@pytest.mark.asyncio(loop_scope="module")
async def test_the_next_document_goes_through_after_a_picture_without_text(
    cell: ParseCell, tmp_path: Path
) -> None:
    path = tmp_path / "noise.tif"
    Image.effect_noise((1500, 1200), 90).save(path)
    with pytest.raises(Refusal):
        await cell.parse(path, TIFF)
    out = io.BytesIO()
    drawn(TEXTS["en"]).save(out, "PNG")
    path.write_bytes(out.getvalue())
    assert "report" in (await cell.parse(path, PNG)).document.markdown
