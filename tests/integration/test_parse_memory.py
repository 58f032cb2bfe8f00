"""A child with too little memory for its document: the refusal says so, whatever the format."""

from pathlib import Path

import pytest

from kernel.errors import Refusal
from kernel.media import HTML, PDF, PNG
from services.converter.cell import ParseCell
from services.converter.process import _Child
from services.converter.settings import ConverterSettings
from tests.unit.converter.drawn import TEXTS, drawn

pytestmark = pytest.mark.slow


def document(folder: Path, media_type: str) -> Path:
    path = folder / "document"
    if media_type == HTML:
        path.write_text("<h1>Report</h1>" + f"<p>{TEXTS['en']}</p>" * 20_000)
    else:
        page = drawn(TEXTS["en"], heading="Report").convert("RGB")
        page.save(path, "PDF" if media_type == PDF else "PNG")
    return path


async def refused(path: Path, media_type: str, mib: int) -> str:
    settings = ConverterSettings(wall_seconds=100).model_copy(update={"memory_mib": mib})
    async with ParseCell(settings) as cell:
        with pytest.raises(Refusal) as told:
            await cell.parse(path, media_type)
    return told.value.code


@pytest.mark.parametrize(("media_type", "mib"), [(PDF, 320), (PNG, 320), (HTML, 100)])
async def test_too_little_memory_is_told(tmp_path: Path, media_type: str, mib: int) -> None:
    assert await refused(document(tmp_path, media_type), media_type, mib) == "parse-memory"


async def test_an_allocation_that_fails_is_told_without_the_parent_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Child, "_memory", lambda _: 0)
    assert await refused(document(tmp_path, HTML), HTML, 160) == "parse-memory"
