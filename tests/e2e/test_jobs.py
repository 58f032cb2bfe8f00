"""Attachments, jobs, deletions and the drop-zone on a whole stack."""

import asyncio
import re
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernel.testing_wait import eventually
from tests.e2e.test_line import LAW, done, ingest, query, upload
from tests.stack import Stack


def mail(*files: tuple[str, bytes], subject: str = "A letter") -> bytes:
    """A mail with attachments."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@x.example", "b@x.example", subject
    message["Date"] = "Mon, 30 Nov 2026 10:00:00 +0000"
    message.set_content(
        "Dear colleagues, please find the new rules of our association attached to this letter.\n"
    )
    for name, data in files:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


async def document(client: httpx.AsyncClient, id_: str) -> dict[str, Any]:
    reply = await client.get(f"/documents/{id_}")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def attached(client: httpx.AsyncClient, id_: str, status: str) -> list[dict[str, Any]]:
    """The documents attached to one, when all of them are in that state."""

    async def all_there() -> list[dict[str, Any]]:
        view = await document(client, id_)
        assert view["attachments"], view
        assert {a["status"] for a in view["attachments"]} == {status}, view["attachments"]
        return list(view["attachments"])

    return await eventually(all_there, deadline=60, every=0.2)


async def test_what_is_attached_to_a_mail_is_found_and_goes_with_it(
    client: httpx.AsyncClient,
) -> None:
    files = [("rules.md", LAW.encode()), ("x.exe", b"MZ\x90\x00" + bytes(300))]
    outer = await ingest(client, "letter.eml", mail(*files), project="mail", source="inbox/1")
    (inner,) = await attached(client, outer.document_id, "indexed")
    assert inner["name"] == "rules.md"
    hit = (await query(client, "maximum fine for a data breach", project="mail"))[0]
    assert hit["document_id"] == inner["document_id"]
    view = await document(client, outer.document_id)
    assert view["left_out_by_code"] == {"unsupported-media-type": 1}
    child = await document(client, inner["document_id"])
    assert child["attached_to"]["document_id"] == outer.document_id
    assert child["source_key"] == "inbox/1#rules.md"

    reply = await client.delete(f"/documents/{outer.document_id}")
    assert reply.status_code == 200, reply.text
    assert reply.json()["documents"] == [outer.document_id, inner["document_id"]]
    await eventually(lambda: _empty(client, "mail"), deadline=30)
    for id_ in (outer.document_id, inner["document_id"]):
        assert (await client.get(f"/documents/{id_}/body")).status_code == 404


async def _empty(client: httpx.AsyncClient, project: str) -> bool:
    found = await query(client, "maximum fine rules association", project=project)
    assert found == []
    return True


async def test_a_deleted_text_is_in_no_file_and_no_table(
    client: httpx.AsyncClient, stack: Stack
) -> None:
    text = LAW.replace("twenty million", "quagga-canary million")
    accepted = await ingest(client, "secret.md", text, project="gone")
    await client.delete(f"/documents/{accepted.document_id}")
    blobs = stack.data.root / "blobs"

    def found() -> list[Path]:
        files = (p for p in blobs.rglob("*") if p.is_file())
        return [p for p in files if b"quagga-canary" in p.read_bytes()]

    assert found() == []
    await eventually(lambda: _empty(client, "gone"), deadline=30)
    reply = await client.post("/rebuild", json={"project": "gone"})
    assert reply.status_code == 200, reply.text
    assert await _empty(client, "gone")
    again = await client.delete(f"/documents/{accepted.document_id}")
    assert (again.status_code, again.json()["versions"]) == (200, 0)
    retry = await client.post(f"/jobs/{accepted.job_id}/retry")
    assert (retry.status_code, retry.json()["type"]) == (409, "urn:kb:problem:bytes-gone")


def without_fence(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each reply has a fence of its own around its passages."""
    return [{k: v for k, v in hit.items() if k != "text"} for hit in hits]


async def test_an_indexed_document_is_parsed_again_and_stays_searchable(
    client: httpx.AsyncClient,
) -> None:
    accepted = await ingest(client, "act.md", LAW, project="retry")
    before = without_fence(await query(client, "maximum fine", project="retry"))
    replies = await asyncio.gather(
        *(client.post(f"/jobs/{accepted.job_id}/retry") for _ in range(4))
    )
    told = [r.json() for r in replies]
    assert {r.status_code for r in replies} == {200}
    assert sum(t["changed"] for t in told) == 1
    assert len({t["job_id"] for t in told}) == 1
    assert without_fence(await query(client, "maximum fine", project="retry")) == before
    again = accepted.model_copy(update={"job_id": told[0]["job_id"]})
    assert (await done(client, again))["status"] == "indexed"
    assert without_fence(await query(client, "maximum fine", project="retry")) == before


async def test_jobs_that_are_cancelled_on_their_way_stay_so(client: httpx.AsyncClient) -> None:
    uploads = [
        upload(client, f"{n}.md", f"{LAW}\nNumber {n}.\n", project="stop", lane="bulk")
        for n in range(12)
    ]
    accepted = await asyncio.gather(*uploads)
    replies = await asyncio.gather(*(client.post(f"/jobs/{a.job_id}/cancel") for a in accepted))
    assert {r.status_code for r in replies} == {200}
    stopped = {a.job_id for a, r in zip(accepted, replies, strict=True) if r.json()["changed"]}
    assert stopped
    last = await ingest(client, "last.md", f"{LAW}\nThe last.\n", project="stop", lane="bulk")
    for a in accepted:
        job = await done(client, a)
        assert job["status"] == ("failed" if a.job_id in stopped else "indexed")
        assert (job["error"] or {}).get("code") == ("cancelled" if a.job_id in stopped else None)
    gone = {a.version_id for a in accepted if a.job_id in stopped}
    hits = await query(client, "maximum fine", project="stop", top_k=50)
    assert not gone & {h["version_id"] for h in hits}
    assert last.version_id in {h["version_id"] for h in hits}


async def test_a_job_can_be_deleted_while_it_runs(client: httpx.AsyncClient) -> None:
    text = "\n\n".join(f"## § {n}\n\n{LAW[200:]} quokka-canary {n}" for n in range(150))
    accepted = await upload(client, "long.md", text, project="overtaken")
    reply = await client.delete(f"/documents/{accepted.document_id}")
    assert reply.status_code == 200, reply.text
    await ingest(client, "after.md", LAW, project="overtaken")
    assert (await done(client, accepted))["status"] == "erased"
    hits = await query(client, "quokka-canary", project="overtaken", top_k=50)
    assert accepted.document_id not in {h["document_id"] for h in hits}


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/jobs/x/cancel"), ("POST", "/jobs/x/retry"), ("DELETE", "/documents/x")],
)
async def test_what_is_not_there_cannot_be_changed(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    reply = await client.request(method, path)
    assert reply.status_code == 404
    assert re.match("urn:kb:problem:unknown-(job|document)", reply.json()["type"])


async def test_the_drop_zone_sorts_what_is_put_into_it(
    client: httpx.AsyncClient, stack: Stack
) -> None:
    zone = stack.data.root / "dropzone"
    (zone / "zone" / "Закони").mkdir(parents=True)
    (zone / "zone" / "Закони" / "good.md").write_text(LAW)
    (zone / "zone" / "broken.pdf").write_bytes(b"%PDF-1.7\n" + bytes(64))
    (zone / "zone" / "a.exe").write_bytes(b"MZ\x90\x00" + bytes(300))
    (zone / "zone" / "half.md.part").write_text(LAW)
    failed = zone / "failed" / "zone"
    await eventually((zone / "done" / "zone" / "Закони" / "good.md").exists, deadline=60, every=0.2)
    await eventually((failed / "broken.pdf").exists, deadline=60, every=0.2)
    await eventually((failed / "a.exe").exists, deadline=30, every=0.2)
    codes = {p.name: p.read_text().splitlines()[0] for p in failed.glob("*.error.txt")}
    assert codes == {
        "broken.pdf.error.txt": "code: corrupt-document",
        "a.exe.error.txt": "code: unsupported-media-type",
    }
    assert (zone / "zone" / "half.md.part").exists()
    hit = (await query(client, "maximum fine for a data breach", project="zone"))[0]
    assert hit["title"] == "Data Protection Act"
