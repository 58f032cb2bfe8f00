"""A document told in short and put into a class, through HTTP and the whole line."""

from typing import Any

import httpx

from contracts.summaries import SummaryView
from kernel.testing_wait import eventually
from tests.e2e.test_line import LAW, ingest, query

COFFEE = """# Coffee machine

## Espresso

Fill the tank with fresh water and press the button with one cup for an espresso.

## Cleaning

Clean the brewing group with warm water after every hundred cups of coffee.
"""
CLASSES: dict[str, Any] = {
    "threshold": 0.3,
    "classes": [
        {
            "name": "law/privacy",
            "description": "Laws, regulations, fines, authorities, protection of personal data.",
            "keywords": ["fine", "data breach", "authority"],
        },
        {
            "name": "manuals",
            "description": "How to use, clean and repair a device in the kitchen.",
            "keywords": ["espresso", "button", "water"],
        },
    ],
}


async def test_a_document_is_told_in_short(client: httpx.AsyncClient) -> None:
    law = await ingest(client, "law.md", LAW, project="told")
    reply = await client.get(f"/documents/{law.version_id}/summary")
    assert reply.status_code == 200, reply.text
    told = SummaryView.model_validate_json(reply.content)
    body = (await client.get(f"/documents/{law.version_id}/body")).content
    assert told.lead is not None
    lead = body[told.lead.byte_start : told.lead.byte_end].decode()
    assert " ".join(lead.split()) == told.lead.text
    assert [s.heading_path[-1] for s in told.sections] == [
        "Data Protection Act", "Chapter 1", "§ 5 Fines", "Chapter 2", "§ 6 Notification",
    ]  # fmt: skip


async def labelled(client: httpx.AsyncClient, version_id: str, label: str) -> None:
    """Wait for a label."""

    async def is_there() -> bool:
        found = (await client.get(f"/documents/{version_id}")).json()["labels"]
        assert label in found, found
        return True

    await eventually(is_there, deadline=60, every=0.1)


async def test_documents_are_put_into_classes_and_found_by_them(client: httpx.AsyncClient) -> None:
    law = await ingest(client, "law.md", LAW, project="classes")
    assert (await client.get("/projects/classes/taxonomy")).status_code == 404
    reply = await client.put("/projects/classes/taxonomy", json=CLASSES)
    assert reply.status_code == 200, reply.text
    coffee = await ingest(client, "coffee.md", COFFEE, project="classes")
    await labelled(client, coffee.version_id, "class:manuals")
    applied = (await client.post("/projects/classes/taxonomy/apply")).json()
    assert (applied["classes"], applied["known"]) == ({"law/privacy": 1}, 1)
    await labelled(client, law.version_id, "class:law")
    hits = await query(client, "water", project="classes", classes=["law"])
    assert {h["version_id"] for h in hits} == {law.version_id}
