"""Every format through the whole line: by HTTP, by the drop-zone, by `kb convert`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from contracts.http import Accepted
from tests.documents import FILES, HEADING, TITLE, text_of, write_all
from tests.e2e.test_line import done, query, upload
from tests.stack import Stack

PROJECT = "formats"
PLACES: dict[str, set[str]] = {
    "md": {"lines"}, "txt": {"lines"}, "log": {"lines"}, "html": {"path"}, "csv": {"lines"},
    "json": {"lines"}, "docx": {"part", "path"}, "xlsx": {"sheet", "cells"},
    "pptx": {"page", "box"}, "odt": {"part", "path"}, "ods": {"sheet", "cells"}, "odp": {"page"},
    "epub": {"part", "path"},
    "eml": {"part"}, "pdf": {"page", "box"}, "scanned": {"page", "box"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("formats")
    write_all(made)
    return made


async def test_every_format_can_be_found_and_leads_back_to_its_original(
    client: httpx.AsyncClient, folder: Path
) -> None:
    accepted: dict[str, Accepted] = {}
    for name in FILES:
        accepted[name] = await upload(client, name, (folder / name).read_bytes(), project=PROJECT)
    jobs = await asyncio.gather(*(done(client, a) for a in accepted.values()))
    assert {j["name"]: j["status"] for j in jobs} == dict.fromkeys(FILES, "indexed")
    for name, (_, word) in FILES.items():
        hit = await _hit(client, accepted[name], word)
        # The format's own word is in the text that was cited, whatever the words before it.
        assert word in hit["text"], name
        params = {"start": hit["byte_start"], "end": hit["byte_end"]}
        places = (await client.get(f"/documents/{hit['version_id']}/places", params=params)).json()
        said = {k for s in places["spans"] for k, v in s["place"].items() if v is not None}
        assert PLACES[word] <= said, (name, places)


async def _hit(client: httpx.AsyncClient, accepted: Accepted, word: str) -> dict[str, Any]:
    hits = await query(client, f"maximum fine in the {word} register", project=PROJECT, top_k=20)
    own = [h for h in hits if h["version_id"] == accepted.version_id]
    assert own, f"{word} is not among {[h['source_id'][:8] for h in hits]}"
    return own[0]


async def test_the_original_comes_back_byte_for_byte(
    client: httpx.AsyncClient, folder: Path
) -> None:
    data = (folder / "handbook.pdf").read_bytes()
    accepted = await upload(client, "handbook.pdf", data, project=PROJECT)
    await done(client, accepted)
    reply = await client.get(f"/documents/{accepted.version_id}/source")
    assert reply.content == data


async def test_an_attachment_is_a_document_of_its_own(
    client: httpx.AsyncClient, folder: Path
) -> None:
    from kernel.testing_wait import eventually

    accepted = await upload(
        client, "mail.eml", (folder / "handbook.eml").read_bytes(), project="mails"
    )
    await done(client, accepted)

    async def found() -> dict[str, Any]:
        hits = await query(client, "maximum fine in the attached register", project="mails")
        child = next(h for h in hits if h["version_id"] != accepted.version_id)
        return dict(child)

    child = await eventually(found, deadline=60, every=0.2)
    assert "attached register" in child["text"]
    view = (await client.get(f"/documents/{child['document_id']}")).json()
    assert view["name"] == "Прилог.txt"


def test_convert_makes_what_an_ingest_makes(stack: Stack, folder: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    names = ["handbook.docx", "handbook.eml", "handbook.pdf"]
    command = [sys.executable, "-m", "cli.main", "convert", *(str(folder / n) for n in names)]
    ran = subprocess.run(
        [*command, "--out", str(tmp_path), "--json"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [Path(row["out"]).name for row in rows] == [f"{n}.md" for n in names]
    for row in rows:
        text = Path(row["out"]).read_text()
        assert text.startswith("---\ntitle: ")
        data = text.split("---\n", 2)[2].lstrip("\n").encode()
        for span in json.loads(Path(row["spans"]).read_bytes())["spans"]:
            assert data[span["byte_start"] : span["byte_end"]].decode().strip()
    (attached,) = rows[1]["attachments"]
    assert text_of("attached")[:40] in Path(attached["out"]).read_text().replace("\n", " ")
    assert HEADING in Path(rows[0]["out"]).read_text()
    assert TITLE in Path(rows[2]["out"]).read_text()
