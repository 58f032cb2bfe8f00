"""Stored texts judged by rules that came later: what leaves the index, what stays, what is killed
on the way."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.events import (
    Chunked,
    Indexed,
    RescanAdvanced,
    RescanCounts,
    RescanFinished,
    RescanStarted,
    ScanVerdict,
)
from contracts.http import ReviewRequest
from kernel.db import pool
from kernel.errors import Refusal
from kernel.log import Log
from kernel.testing_wait import eventually
from services.indexer.rebuild import rebuild
from services.scanner import rescan as rescan_module
from services.scanner.domain import ScanResult
from services.scanner.review import review
from services.search.projection import digest
from tests.integration.rescan_world import World

GOOD = "# Act\n\nThe maximum fine for a breach is twenty million euro.\n"
BAD = "# Guide\n\nThe purple walrus swims in the northern sea of documents.\n"
HIDDEN = "# Notes\n\nThe harbour opens at seven in the morning.\nhidden:purple walrus\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rules")


@pytest.fixture
async def world(database: str, folder: Path) -> AsyncIterator[World]:
    db = await pool(database, size=10)
    log = Log(db)
    yield World(log, folder, await log.identity_key())
    db.terminate()


async def decide(world: World, version_id: str, decision: Any) -> None:
    request = ReviewRequest(decision=decision, reason="looked at it")
    await review(version_id, request, "editor-1", world.log)
    await world.deliver()


async def test_a_document_that_later_rules_find_bad_leaves_the_index_and_waits(
    world: World,
) -> None:
    good, bad = await world.send("act.md", GOOD), await world.send("guide.md", BAD)
    await world.deliver()
    assert await world.ask("purple walrus") == ["act.md", "guide.md"]
    world.rules.use("medium")
    view = await world.rescan()
    assert await world.rows() == {good}
    assert await world.points() == 1
    assert await world.ask("purple walrus") == ["act.md"]
    assert await world.ask("purple walrus", include_historical=True) == ["act.md"]
    assert (await world.status(bad), await world.status(good)) == ("review", "indexed")
    assert (view.state, view.done, view.receipts) == ("finished", 2, 2)
    assert view.counts == RescanCounts(looked=2, clean=1, quarantined=1)


async def test_the_verdict_says_what_was_found_where_and_by_which_rules(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    before = (await world.of_type(ScanVerdict))[-1]
    world.rules.use("medium")
    view = await world.rescan()
    verdict = (await world.of_type(ScanVerdict))[-1]
    assert (verdict.rescan, verdict.ruleset) == (view.rescan_id, world.rules.version)
    assert (verdict.subject, verdict.verdict, verdict.lowered) == ("converted", "quarantine", False)
    assert (verdict.text_sha256, verdict.meta_sha256) == (before.text_sha256, before.meta_sha256)
    (finding,) = verdict.findings
    assert BAD.encode()[finding.byte_start : finding.byte_end] == b"purple walrus"
    assert verdict.version_id == bad


async def test_the_projection_sees_it_before_the_indexer_does(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    await world.rescanner.round()
    await world.fold()
    assert bad in await world.rows()
    assert await world.ask("purple walrus") == []
    with pytest.raises(Refusal, match="no-body"):
        await world.documents.body(bad)


async def test_a_release_brings_it_back_without_a_model(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    before = await world.documents.document(bad)
    world.rules.use("medium")
    await world.rescan()
    await decide(world, bad, "release")
    assert await world.ask("purple walrus") == ["guide.md"]
    assert await world.points() == 1
    indexed = (await world.of_type(Indexed))[-1]
    assert (indexed.embedded, indexed.reused) == (0, 1)
    after = await world.documents.document(bad)
    assert (after.status, after.windows, after.job_id) == ("indexed", before.windows, before.job_id)
    world.rules.use("high")
    kept = await world.rescan()
    assert kept.counts.kept == {"released": 1}
    assert await world.ask("purple walrus") == ["guide.md"]
    report = await world.requests.report(kept.rescan_id)
    assert report.hits == []
    assert [(k.version_id, k.code, k.rules) for k in report.kept] == [
        (bad, "released", ("override.test.walrus",))
    ]


async def test_a_rejection_keeps_it_out_also_of_a_rebuild(world: World) -> None:
    good, bad = await world.send("act.md", GOOD), await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    await world.rescan()
    await decide(world, bad, "reject")
    assert await world.status(bad) == "rejected"
    rebuilt = await rebuild(world.index, "default")
    assert (rebuilt.versions, await world.rows()) == (1, {good})
    assert await world.ask("purple walrus") == ["act.md"]


async def test_what_would_be_blocked_is_not_deleted_but_waits_too(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("high")
    view = await world.rescan()
    verdict = (await world.of_type(ScanVerdict))[-1]
    assert (verdict.verdict, verdict.lowered) == ("quarantine", True)
    assert verdict.findings[0].severity == "high"
    assert (await world.status(bad), view.counts.quarantined, view.counts.lowered) == (
        "review", 1, 1,
    )  # fmt: skip
    assert verdict.text_sha256 in world.blobs.content
    (hit,) = (await world.requests.report(view.rescan_id)).hits
    assert (hit.version_id, hit.verdict, hit.decision) == (bad, "block", "open")
    assert (hit.name, hit.rules) == ("guide.md", ["override.test.walrus"])
    await decide(world, bad, "release")
    assert await world.ask("purple walrus") == ["guide.md"]
    assert (await world.requests.report(view.rescan_id)).hits[0].decision == "released"


async def test_what_is_hidden_in_the_parse_takes_the_body_out(world: World) -> None:
    bad = await world.send("notes.md", HIDDEN)
    await world.deliver()
    assert await world.ask("harbour") == ["notes.md"]
    world.rules.use("medium")
    await world.rescan()
    verdict = (await world.of_type(ScanVerdict))[-1]
    assert (verdict.subject, verdict.findings[0].hidden) == ("parsed", "comment")
    assert await world.ask("harbour") == []
    assert await world.rows() == set()
    assert (await rebuild(world.index, "default")).versions == 0
    await decide(world, bad, "release")
    assert await world.ask("harbour") == ["notes.md"]
    assert (await world.rescan()).counts.kept == {"released": 1}
    assert (await world.rescan()).counts.known == 1


async def test_a_version_that_was_replaced_leaves_the_history_too(world: World) -> None:
    old = await world.send("guide.md", BAD)
    await world.deliver()
    new = await world.send("guide.md", GOOD)
    await world.deliver()
    assert await world.ask("purple walrus", include_historical=True) == ["guide.md"]
    before = (await world.documents.document(new)).versions
    world.rules.use("medium")
    await world.rescan()
    assert await world.rows() == {new}
    assert await world.status(old) == "review"
    await decide(world, old, "release")
    assert await world.rows() == {old, new}
    after = (await world.documents.document(new)).versions
    assert [v.windows for v in after] == [v.windows for v in before]
    assert [v.current for v in after] == [False, True]


async def test_windows_that_were_set_while_it_waited_are_there_when_it_returns(
    world: World,
) -> None:
    old = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    await world.rescan()
    new = await world.send("guide.md", GOOD)
    await world.deliver()
    assert await world.ask("purple walrus", include_historical=True) == ["guide.md"]
    assert await world.rows() == {new}
    await decide(world, old, "release")
    view = await world.documents.document(new)
    assert [(v.version_id, v.current) for v in view.versions] == [(old, False), (new, True)]
    assert view.versions[0].windows[0].valid_until == view.versions[1].windows[0].valid_from


async def test_trust_is_kept_and_reported(world: World) -> None:
    bad = await world.send("guide.md", BAD, trusted=True)
    await world.deliver()
    world.rules.use("high")
    view = await world.rescan()
    assert view.counts.kept == {"trusted": 1}
    assert await world.ask("purple walrus") == ["guide.md"]
    assert (await world.requests.report(view.rescan_id)).kept[0].version_id == bad


async def test_a_quarantine_of_one_document_does_not_touch_a_trusted_one_with_the_same_text(
    world: World,
) -> None:
    trusted = await world.send("a.md", BAD, trusted=True)
    await world.deliver()
    world.rules.use("medium")
    other = await world.send("b.md", BAD)
    await world.deliver()
    assert (await world.status(trusted), await world.status(other)) == ("indexed", "review")
    assert (await rebuild(world.index, "default")).versions == 1


async def test_a_second_re_scan_with_the_same_rules_reads_nothing(world: World) -> None:
    for n in range(3):
        await world.send(f"{n}.md", GOOD + f"Number {n}.\n")
    await world.deliver()
    world.rules.use("medium")
    await world.rescan()
    read = world.rules.read
    assert (await world.rescan()).counts == RescanCounts(looked=3, known=3)
    assert world.rules.read == read
    await world.send("new.md", GOOD + "New.\n")
    await world.deliver()
    read = world.rules.read
    assert (await world.rescan()).counts.known == 4
    assert world.rules.read == read


async def test_only_the_project_that_was_asked_for_is_read(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    other = await world.send("guide.md", BAD, project="other")
    await world.deliver()
    world.rules.use("medium")
    await world.rescan("other")
    assert (await world.status(bad), await world.status(other)) == ("indexed", "review")
    with pytest.raises(Refusal, match="unknown-project"):
        await world.requests.start("nothing", "admin-1")


async def test_a_text_that_is_lost_or_changed_is_counted_and_the_others_go_on(
    world: World,
) -> None:
    ids = [await world.send(f"{n}.md", BAD + f"Number {n}.\n") for n in range(3)]
    await world.deliver()
    for chunked, data in zip(await world.of_type(Chunked), (None, b"# x\n"), strict=False):
        if data is None:
            del world.blobs.content[chunked.body_sha256]
        else:
            world.blobs.content[chunked.body_sha256] = data
    world.rules.use("medium")
    view = await world.rescan()
    assert view.counts.kept == {"text-missing": 1, "text-changed": 1}
    assert view.counts.quarantined == 1
    assert await world.status(ids[2]) == "review"
    again = await world.rescan()
    assert (again.counts.kept, again.counts.absent) == (view.counts.kept, 1)  # they are tried again


async def test_a_rule_that_falls_over_a_text_costs_that_text_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.send("0.md", GOOD)
    bad = await world.send("1.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    judge = world.rules.judge

    def falls(text: str, hidden: Any) -> Any:
        if "twenty million" in text:
            raise RecursionError
        return judge(text, hidden)

    monkeypatch.setattr(world.rules, "judge", falls)
    view = await world.rescan()
    assert (view.counts.kept, view.counts.quarantined) == ({"text-unreadable": 1}, 1)
    assert await world.status(bad) == "review"


async def test_replay_from_zero_equals_the_live_projection(world: World) -> None:
    first = await world.send("guide.md", BAD)
    second = await world.send("notes.md", HIDDEN)
    await world.send("third.md", BAD + "Third.\n")
    await world.deliver()
    world.rules.use("medium")
    await world.rescan()
    await world.send("guide.md", GOOD)
    await world.deliver()
    await decide(world, first, "release")
    await decide(world, second, "reject")
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live


# -- killed, doubled, cancelled --------------------------------------------------------------------


async def many(world: World, count: int) -> list[str]:
    """Every third document is bad."""
    ids = []
    for n in range(count):
        text = BAD if n % 3 == 0 else GOOD
        ids.append(await world.send(f"{n}.md", f"{text}Number {n}.\n"))
    await world.deliver()
    return ids


def expected(count: int) -> RescanCounts:
    bad = len(range(0, count, 3))
    return RescanCounts(looked=count, clean=count - bad, quarantined=bad)


@pytest.mark.parametrize("killed_at", [1, 9, 20, 29])
async def test_killed_half_way_it_goes_on_and_nothing_happens_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    monkeypatch.setattr(rescan_module, "PAGE", 4)
    await many(world, 15)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    judge, texts = world.rules.judge, 0

    def killed(text: str, hidden: Any) -> Any:
        nonlocal texts
        texts += 1
        if texts == killed_at:
            loop.call_soon_threadsafe(task.cancel)
        return judge(text, hidden)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(world.rules, "judge", killed)
    task = asyncio.create_task(world.rescanner.round())
    with suppress(asyncio.CancelledError):
        await task
    monkeypatch.setattr(world.rules, "judge", judge)
    assert await world.of_type(RescanFinished) == []
    done = [a.receipts for a in await world.of_type(RescanAdvanced)]
    other, later = world.restarted(), datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr(other, "_now", lambda: later)
    read = world.rules.read
    await other.round()
    # At most four readings of each version that was not recorded as done.
    assert world.rules.read - read <= 4 * (15 - max(done, default=0))
    await world.deliver()
    view = (await world.requests.status(None)).rescans[0]
    assert (view.state, view.counts, view.done) == ("finished", expected(15), 15)
    hits = [v.version_id for v in await world.of_type(ScanVerdict) if v.rescan]
    assert len(hits) == len(set(hits)) == 5


async def test_a_worker_waits_for_another_that_is_at_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescan_module, "PAGE", 2)
    await many(world, 4)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    advance = world.rescanner._advance

    async def dies(*args: Any) -> Any:
        await advance(*args)
        raise OSError("gone")

    monkeypatch.setattr(world.rescanner, "_advance", dies)
    with pytest.raises(OSError, match="gone"):
        await world.rescanner.round()
    read = world.rules.read
    other = world.restarted()
    await other.round()
    assert world.rules.read == read  # it was silent for a moment only
    monkeypatch.setattr(world.rescanner, "_advance", advance)
    await world.rescanner.round()  # its own re-scan it goes on with at once
    assert (await world.requests.status(None)).rescans[0].state == "finished"


async def test_two_workers_at_once_find_everything_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescan_module, "PAGE", 3)
    await many(world, 12)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    workers = [world.rescanner, world.restarted(), world.restarted()]
    await asyncio.gather(*(w.round() for w in workers))
    await world.deliver()
    assert (await world.requests.status(None)).rescans[0].counts == expected(12)
    hits = [v.version_id for v in await world.of_type(ScanVerdict) if v.rescan]
    assert len(hits) == len(set(hits)) == 4
    assert len(await world.of_type(RescanFinished)) == 1


async def test_two_requests_at_once_begin_one_re_scan_and_the_second_is_told(
    world: World,
) -> None:
    await many(world, 2)
    replies = await asyncio.gather(*(world.requests.start(None, f"p{n}") for n in range(4)))
    assert sorted(r.started for r in replies) == [(), (), (), ("default",)]
    assert len(await world.of_type(RescanStarted)) == 1
    assert {r.rescans[0].rescan_id for r in replies} == {replies[0].rescans[0].rescan_id}


async def test_a_re_scan_can_be_cancelled_and_what_it_found_stays_in_review(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescan_module, "PAGE", 2)
    ids = await many(world, 8)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    advance = world.rescanner._advance

    async def cancelled(*args: Any) -> Any:
        done = await advance(*args)
        await world.requests.cancel(None, "admin-2")
        return done

    monkeypatch.setattr(world.rescanner, "_advance", cancelled)
    await world.rescanner.round()
    await world.deliver()
    view = (await world.requests.status(None)).rescans[0]
    assert (view.state, view.done) == ("cancelled", 2)
    assert [await world.status(v) for v in ids[:4]] == ["review", "indexed", "indexed", "indexed"]
    assert len(await world.of_type(RescanFinished)) == 1
    monkeypatch.setattr(world.rescanner, "_advance", advance)
    assert (await world.rescan()).counts == RescanCounts(looked=8, clean=5, quarantined=2, absent=1)


async def test_new_rules_replace_a_re_scan_that_runs_with_old_ones(world: World) -> None:
    await many(world, 3)
    await world.requests.start(None, "admin-1")
    world.rules.use("medium")
    await world.rescanner.round()  # begun by a process with other rules
    view = (await world.requests.status(None)).rescans[0]
    assert (view.done, view.waiting) == (0, "other-rules")
    reply = await world.requests.start(None, "admin-1")
    assert reply.started == ("default",)
    assert reply.position == await world.log.head()
    outcomes = [f.outcome for f in await world.of_type(RescanFinished)]
    await world.rescanner.round()
    assert outcomes == ["replaced"]
    assert (await world.requests.status(None)).rescans[0].counts == expected(3)


async def test_a_process_that_comes_up_with_new_rules_begins_an_open_re_scan_anew(
    world: World,
) -> None:
    await many(world, 3)
    await world.requests.start(None, "admin-1")
    world.rules.use("medium")
    await world.restarted().round(adopt=True)
    view = (await world.requests.status(None)).rescans[0]
    assert (view.state, view.ruleset, view.actor) == (
        "finished", world.rules.version, "svc:scanner",
    )  # fmt: skip


async def test_the_worker_wakes_for_a_request_and_survives_a_store_that_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(world, 3)
    world.rules.use("medium")
    size, away = world.blobs.size, [OSError("away")]

    async def sometimes(name: str) -> int:
        if away:
            raise away.pop()
        return await size(name)

    monkeypatch.setattr(world.blobs, "size", sometimes)
    monkeypatch.setattr(rescan_module, "POLL", 0.05)
    task = asyncio.create_task(world.rescanner.run())
    await world.requests.start(None, "admin-1")

    async def finished() -> bool:
        return (await world.requests.status(None)).rescans[0].state == "finished"

    await eventually(finished)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert (await world.requests.status(None)).rescans[0].counts == expected(3)


async def test_what_is_new_goes_first_but_not_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(world, 2)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    read = world.rules.read
    async with world.first.live():
        task = asyncio.create_task(world.rescanner.round())
        await asyncio.sleep(0.2)
        assert world.rules.read == read
    await task
    assert world.rules.read > read
    monkeypatch.setattr(rescan_module, "PATIENCE", 0.01)
    world.rules.use("high")
    await world.requests.start(None, "admin-1")
    async with world.first.live():
        await world.rescanner.round()
    assert (await world.requests.status(None)).rescans[0].state == "finished"


@pytest.mark.slow
async def test_two_thousand_versions_take_little_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, total = 20_000, 2000
    for n in range(total):
        await world.stored_before(f"{n}.md", f"{n} ".ljust(size, "x"))
    monkeypatch.setattr(world.rules, "judge", lambda text, hidden: ScanResult("clean", 0.0, ()))
    await world.requests.start(None, "admin-1")
    tracemalloc.start()
    await world.rescanner.round()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    view = (await world.requests.status(None)).rescans[0]
    assert view.counts == RescanCounts(looked=total, clean=total)
    assert peak < size * total / 4


# -- what happens meanwhile ------------------------------------------------------------------------


async def during(world: World, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """A re-scan in which something happens right after a text was judged, before its verdict."""
    body, acted = world.stored.body, False

    async def then(*args: Any, **more: Any) -> Any:
        nonlocal acted
        result = await body(*args, **more)
        if not acted:
            acted = True
            await act()
        return result

    monkeypatch.setattr(world.stored, "body", then)
    await world.requests.start(None, "admin-1")
    await world.rescanner.round()
    monkeypatch.setattr(world.stored, "body", body)
    await world.deliver()


async def test_a_version_that_comes_meanwhile_is_judged_by_its_own_scan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await world.send("guide.md", GOOD)
    await world.deliver()
    world.rules.use("medium")

    async def arrives() -> None:
        await world.send("guide.md", BAD)
        await world.deliver()

    await during(world, monkeypatch, arrives)
    assert await world.rows() == {old}
    view = (await world.requests.status(None)).rescans[0]
    assert view.counts == RescanCounts(looked=1, clean=1)
    assert (await world.of_type(ScanVerdict))[-1].rescan is None
    assert await world.ask("maximum fine") == ["guide.md"]


async def test_a_document_that_is_deleted_meanwhile_stays_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    document_id = (await world.documents.document(bad)).document_id

    async def deleted() -> None:
        await world.eraser.delete(document_id, "admin-1")

    await during(world, monkeypatch, deleted)
    assert await world.status(bad) == "erased"
    assert await world.rows() == set()
    with pytest.raises(Refusal, match="not-in-review"):
        await decide(world, bad, "release")
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live


async def test_a_document_that_is_deleted_before_it_is_read_is_absent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    document_id = (await world.documents.document(bad)).document_id
    parse = world.stored.parse

    async def late(name: str) -> Any:
        await world.eraser.delete(document_id, "admin-1")
        return await parse(name)

    monkeypatch.setattr(world.stored, "parse", late)
    view = await world.rescan()
    assert view.counts == RescanCounts(looked=1, absent=1)


async def test_a_decision_that_comes_meanwhile_counts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first re-scan found it; while a second one judges it, a person rejects it."""
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")

    async def found_and_rejected() -> None:
        await world.requests.cancel(None, "admin-1")
        await world.requests.start(None, "admin-1")
        await world.restarted().round()
        await decide(world, bad, "reject")

    await during(world, monkeypatch, found_and_rejected)
    assert await world.status(bad) == "rejected"
    assert len([v for v in await world.of_type(ScanVerdict) if v.rescan]) == 1


async def test_a_release_that_comes_meanwhile_is_not_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    job = (await world.documents.document(bad)).job_id
    world.rules.use("medium")

    async def tried_again_and_released() -> None:
        await world.jobs.retry(job, "editor-1")
        await world.deliver()
        while await world.status(bad) == "review":
            await decide(world, bad, "release")

    await during(world, monkeypatch, tried_again_and_released)
    assert await world.status(bad) == "indexed"
    assert await world.rows() == {bad}
    assert [v for v in await world.of_type(ScanVerdict) if v.rescan] == []
    view = (await world.requests.status(None)).rescans[0]
    assert view.counts.kept == {"released": 1}


@pytest.mark.parametrize("stop", ["Converted", "Chunked", "Indexed"])
@pytest.mark.parametrize("text", [BAD, HIDDEN])
async def test_what_old_rules_cleared_and_is_under_way_is_stopped(
    world: World, stop: str, text: str
) -> None:
    bad = await world.send("guide.md", text)
    await world.deliver(stop)
    world.rules.use("medium")
    await world.requests.start(None, "admin-1")
    await world.rescanner.round()
    await world.deliver()
    assert await world.status(bad) == "review"
    assert await world.rows() == set()
    assert await world.points() == 0
    assert (await rebuild(world.index, "default")).versions == 0
    for _ in range(2):  # a parse that is released is converted, and its body is scanned again
        with suppress(Refusal):
            await decide(world, bad, "release")
    assert await world.status(bad) == "indexed"
    assert await world.rows() == {bad}


async def test_a_verdict_that_comes_while_a_text_is_written_takes_it_out_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver("Chunked")
    world.rules.use("medium")
    write = world.index.write

    async def written(*args: Any) -> Any:
        done = await write(*args)
        await world.requests.start(None, "admin-1")
        await world.rescanner.round()
        return done

    monkeypatch.setattr(world.index, "write", written)
    await world.deliver()
    assert await world.rows() == set()
    assert await world.of_type(Indexed) == []
    assert await world.status(bad) == "review"


async def test_a_verdict_between_the_write_and_its_event_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver("Chunked")
    world.rules.use("medium")
    append, done = world.log.append, False

    async def late(pending: Any, **more: Any) -> Any:
        nonlocal done
        if isinstance(pending[0].event, Indexed) and not done:
            done = True
            await world.requests.start(None, "admin-1")
            await world.rescanner.round()
        return await append(pending, **more)

    monkeypatch.setattr(world.log, "append", late)
    await world.deliver()
    assert await world.rows() == set()
    assert await world.of_type(Indexed) == []
    assert await world.status(bad) == "review"


async def test_a_hit_is_out_of_an_index_that_is_rebuilt_at_the_same_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = await world.send("act.md", GOOD), await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    passages = world.index.passages

    async def meanwhile(*args: Any) -> Any:
        found = await passages(*args)
        monkeypatch.setattr(world.index, "passages", passages)
        await world.rescan()
        return found

    monkeypatch.setattr(world.index, "passages", meanwhile)
    rebuilt = await rebuild(world.index, "default")
    assert (rebuilt.versions, await world.rows()) == (1, {good})
    assert await world.points() == 2, "one that answers, and one in the generation that stands by"
    assert await world.status(bad) == "review"


async def test_a_new_attempt_is_judged_by_the_new_rules_and_the_old_text_leaves(
    world: World,
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    job = (await world.documents.document(bad)).job_id
    await world.jobs.retry(job, "editor-1")
    world.rules.use("medium")
    await world.deliver()
    assert await world.rows() == set()
    assert await world.status(bad) == "review"
    await world.rescan()
    while await world.status(bad) == "review":
        await decide(world, bad, "release")
    assert await world.rows() == {bad}
    assert await world.ask("purple walrus") == ["guide.md"]


async def test_the_newest_attempt_was_cancelled_and_the_old_one_takes_the_decision(
    world: World,
) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    first = (await world.documents.document(bad)).job_id
    again = await world.jobs.retry(first, "editor-1")
    await world.jobs.cancel(again.job_id, "editor-1")
    await world.deliver()
    assert await world.ask("purple walrus") == ["guide.md"]
    world.rules.use("medium")
    await world.rescan()
    view = await world.documents.document(bad)
    assert (view.status, view.job_id) == ("review", first)
    await decide(world, bad, "release")
    assert await world.ask("purple walrus") == ["guide.md"]
    assert await world.status(bad) == "indexed"
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live


async def test_a_review_that_is_cancelled_leaves_the_text_out(world: World) -> None:
    bad = await world.send("guide.md", BAD)
    await world.deliver()
    world.rules.use("medium")
    view = await world.rescan()
    await world.jobs.cancel((await world.documents.document(bad)).job_id, "editor-1")
    await world.deliver()
    assert await world.status(bad) == "failed"
    assert await world.rows() == set()
    assert (await world.requests.report(view.rescan_id)).hits[0].decision == "over"
    with pytest.raises(Refusal, match="no-body"):
        await world.documents.body(bad)
