"""Erasures asked for by document and by bytes: what would go, what went, what is open."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from contracts.erasure import ErasePlan, Erasure
from contracts.events import Erased, IndexPurged
from kernel.erasure import GONE
from kernel.errors import Refusal
from kernel.log import Log, reactions
from kernel.testing import MemoryLog
from kernel.web import create_api
from services.ingest.erase import Why
from services.ingest.erasures import add_erasure_routes
from services.ingest.handlers import on_erased
from services.ingest.receipts import Receipts
from tests.unit.ingest.test_jobs import TEXT, World, about, erase, judge

KEY = "k" * 32


@pytest.fixture
def world(tmp_path: Any) -> World:
    log: Any = MemoryLog()
    return World(log, tmp_path / "blobs")


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    app = create_api("ingest", api_key=KEY, health=health)
    add_erasure_routes(app, world.log, world.eraser, world.jobs)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://ingest",
        headers={"Authorization": f"Bearer {KEY}"},
    ) as made:  # fmt: skip
        yield made


async def post(client: httpx.AsyncClient, path: str = "/erasures", **asked: str) -> Any:
    reply = await client.post(path, json=asked)
    assert reply.is_success, reply.text
    return reply.json()


async def said_by_indexer(world: World, *receipts: Erasure) -> None:
    """What the indexer answers to each tombstone."""
    for receipt in receipts:
        for version in receipt.versions:
            (tombstone,) = [e for e in await world.log.read(0) if e.position == version.position]
            ids = tombstone.event().ids
            event = IndexPurged(
                project=ids["project"], document_id=ids["document_id"],
                version_id=ids["version_id"], removed={"passages": 2, "vectors": 2},
            )  # fmt: skip
            await world.log.append(reactions(tombstone, "indexer.on_erased", [event]))


async def test_a_receipt_is_complete_when_every_service_has_said_its_part(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("indexed")
    receipt = Erasure.model_validate(await post(client, document=accepted.document_id))
    assert (receipt.complete, receipt.open, receipt.done_at) == (False, {"index": 1}, None)
    assert receipt.removed | {"names": 0} == {
        "originals": 1, "parses": 2, "bodies": 1, "other": 2, "cached-parses": 1, "names": 0,
    }  # fmt: skip
    await said_by_indexer(world, receipt)
    for id_ in (receipt.id, accepted.document_id, accepted.version_id):
        done = Erasure.model_validate((await client.get(f"/erasures/{id_}")).json())
        assert (done.complete, done.open) == (True, {})
        assert done.removed["passages"] == 2
        assert done.done_at is not None


async def test_asked_again_it_is_the_receipt_of_the_first_time(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("indexed")
    first = await post(client, document=accepted.document_id)
    before = await world.types()
    again = await post(client, document=accepted.document_id)
    assert again["versions"] == first["versions"]
    assert await world.types() == before


async def test_bytes_go_from_every_document_of_the_project_that_has_them(
    world: World, client: httpx.AsyncClient
) -> None:
    one, two = await world.reach("indexed", source="one"), await world.reach("parsed", source="two")
    stays = await world.reach("indexed", b"# Another\n", source="one")
    elsewhere = await world.eraser.bytes_in(one.source_id, "elsewhere")
    assert elsewhere == {}
    receipt = await post(client, source=one.source_id)
    gone = {v["version_id"] for v in receipt["versions"]}
    assert gone == {one.version_id, two.version_id}
    assert {v["scope"] for v in receipt["versions"]} == {"source"}
    assert receipt["removed"]["originals"] == 1  # they were the same
    assert await world.status(stays) == "indexed"
    assert await world.blobs.exists(stays.source_id)


async def test_bytes_that_stay_for_another_are_told_and_go_with_that_one(
    world: World, client: httpx.AsyncClient
) -> None:
    one, two = await world.reach("indexed", source="one"), await world.reach("indexed", source="2")
    first = await post(client, document=one.document_id)
    assert first["removed"]["originals"] == 0
    assert first["kept"]["originals"] == 1
    assert await world.blobs.exists(one.source_id)
    last = await post(client, document=two.document_id)
    assert (last["removed"]["originals"], last["kept"]) == (1, {})
    assert await world.stored() == set()


async def test_a_plan_tells_what_would_go_and_changes_nothing(
    world: World, client: httpx.AsyncClient
) -> None:
    one = await world.reach("indexed", source="k")
    await world.reach("parsed", b"# Two\n", source="k")
    before, stored = await world.types(), await world.stored()
    told = await post(client, "/erasures/plan", document=one.document_id)
    plan = ErasePlan.model_validate(told)
    assert (plan.versions, plan.jobs, plan.blobs, plan.kept) == (2, 1, 7, 0)
    bytes_alone = await post(client, "/erasures/plan", source=one.source_id)
    (target,) = bytes_alone["documents"]
    assert (target["versions"], target["stay"]) == ([one.version_id], 1)
    assert (await world.types(), await world.stored()) == (before, stored)
    await post(client, document=one.document_id)
    after = await post(client, "/erasures/plan", document=one.document_id)
    assert (after["documents"], after["versions"]) == ([], 0)


async def test_names_leave_the_log_of_the_version_that_was_erased_alone(
    world: World, client: httpx.AsyncClient
) -> None:
    one = await world.reach("indexed", source="a key")
    other = await world.reach("indexed", b"# Two\n", source="a key")
    await post(client, source=one.source_id)
    receipts = [e for e in await world.log.read(0) if e.type == "DocumentReceived"]
    names = {e.data["version_id"]: (e.data["name"], e.data["source_key"]) for e in receipts}
    assert names == {one.version_id: (GONE, ""), other.version_id: ("a.md", "a key")}


async def test_of_what_the_scanner_blocked_the_name_stays_until_a_person_asks(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("parsed")
    verdict = await judge("block", "parsed")(world, about(accepted))
    await world.add(accepted.job_id, verdict)
    await world.add(accepted.job_id, await world.eraser.blocked(verdict))
    await world.eraser.clean(accepted.document_id, accepted.version_id)
    receipts = await world.log.receipts(accepted.source_id)
    assert [r.name for r in receipts] == ["a.md"]
    receipt = await post(client, document=accepted.document_id)
    assert [v["reason"] for v in receipt["versions"]] == ["request"]
    assert [r.name for r in await world.log.receipts(accepted.source_id)] == [GONE]


async def test_what_was_deleted_before_there_were_receipts_gets_one_when_it_is_asked_for(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("indexed")
    old = await world.add(accepted.job_id, await erase(world, about(accepted)))
    log: Any = world.log
    data = {k: v for k, v in old.data.items() if k != "scope"}
    log.events[-1] = old.model_copy(update={"schema_version": 1, "data": data})
    receipt = await post(client, document=accepted.document_id)
    assert [v["removed"]["names"] for v in receipt["versions"]] == [1]
    again = await post(client, document=accepted.document_id)
    assert again["removed"] == receipt["removed"]
    assert (await world.types()).count("Erased") == 2


async def test_what_comes_again_after_its_erasure_is_a_document_as_any_other(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("indexed")
    await post(client, document=accepted.document_id)
    again = await world.upload()
    assert (again.document_id, again.version_id) == (accepted.document_id, accepted.version_id)
    tombstone = next(e for e in await world.log.read(0) if e.type == "Erased")
    event = tombstone.event()
    assert isinstance(event, Erased)
    (said,) = await on_erased(event, eraser=world.eraser)  # it comes around late
    assert said.removed["originals"] == 0
    assert await world.blobs.exists(again.source_id)
    newest = (await world.log.receipts(again.source_id))[-1]
    assert (newest.name, newest.attempt) == ("a.md", 2)


@pytest.mark.parametrize("step", range(6))
async def test_killed_at_any_step_the_next_delivery_finishes_it(
    world: World, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    accepted = await world.reach("indexed")
    real, calls = world.blobs.delete, 0

    async def dying(name: str) -> bool:
        nonlocal calls
        calls += 1
        if calls > step:
            raise RuntimeError("killed")
        return await real(name)

    event = await erase(world, about(accepted))
    await world.add(accepted.job_id, event)
    monkeypatch.setattr(world.blobs, "delete", dying)
    with pytest.raises(RuntimeError):
        await on_erased(event, eraser=world.eraser)
    monkeypatch.setattr(world.blobs, "delete", real)
    (said,) = await on_erased(event, eraser=world.eraser)
    assert await world.stored() == set()
    assert (said.removed["originals"], said.removed["bodies"]) == (1, 1)


async def test_the_request_and_the_event_at_once_count_what_went_once(racing: World) -> None:
    accepted = await racing.reach("indexed")
    why = Why("request", "somebody")

    async def follow() -> None:
        while True:
            graves = [e for e in await racing.log.read(0) if e.type == "Erased"]
            if graves:
                event = graves[0].event()
                assert isinstance(event, Erased)
                said = await on_erased(event, eraser=racing.eraser)
                await racing.log.append(reactions(graves[0], "ingest.on_erased", said))
                return
            await asyncio.sleep(0)

    await asyncio.gather(racing.eraser.erase({accepted.document_id: None}, why), follow())
    receipt = await Receipts(racing.log).of(str(why.request))
    assert receipt.removed["originals"] == receipt.removed["bodies"] == 1
    assert (await racing.types()).count("BytesPurged") == 1


@pytest.fixture
def racing(real_log: Log, tmp_path: Any) -> World:
    """The same on a real log."""
    return World(real_log, tmp_path / "blobs")


@pytest.mark.parametrize("role", ["viewer", "editor"])
async def test_only_an_administrator_may(
    world: World, client: httpx.AsyncClient, role: str
) -> None:
    accepted = await world.reach("indexed")
    headers = {"x-kb-role": role, "x-kb-actor": "actor:1"}
    asked = {"document": accepted.document_id}
    for path in ("/erasures", "/erasures/plan"):
        assert (await client.post(path, json=asked, headers=headers)).status_code == 403
    reply = await client.get(f"/erasures/{accepted.document_id}", headers=headers)
    assert reply.status_code == 403
    assert await world.blobs.exists(accepted.source_id)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 422),
        ({"document": "d", "source": "0" * 64}, 422),
        ({"source": "not-a-hash"}, 422),
        ({"document": "nothing"}, 404),
        ({"source": "0" * 64}, 404),
        ({"document": "x", "more": 1}, 422),
    ],
)
async def test_what_is_asked_wrongly_is_refused(
    client: httpx.AsyncClient, asked: dict[str, Any], status: int
) -> None:
    for path in ("/erasures", "/erasures/plan"):
        assert (await client.post(path, json=asked)).status_code == status


@pytest.mark.parametrize("id_", ["0" * 32, "8a98921e-e7ea-450d-a2bc-bd5baa1b2c50", "a-b", "x"])
async def test_of_what_was_not_erased_there_is_no_receipt(world: World, id_: str) -> None:
    with pytest.raises(Refusal, match="unknown-erasure"):
        await Receipts(world.log).of(id_)


async def test_two_erasures_of_one_version_are_two_lines(
    world: World, client: httpx.AsyncClient
) -> None:
    accepted = await world.reach("indexed")
    await post(client, document=accepted.document_id)
    await world.upload(TEXT)
    await post(client, document=accepted.document_id)
    receipt = Erasure.model_validate((await client.get(f"/erasures/{accepted.document_id}")).json())
    assert [v.removed["originals"] for v in receipt.versions] == [1, 1]
    assert [v.removed["bodies"] for v in receipt.versions] == [1, 0]
