"""What may be indexed follows from the newest word about exactly that text."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Rejected,
    Released,
    ScanVerdict,
)
from kernel.clearance import Text, Texts, texts_of_version
from kernel.log import Pending
from kernel.testing import MemoryLog, received

A, B, C, D, E = (c * 64 for c in "abcde")
PARSE, BODY, META, CHUNKS = A, B, C, D
IDS = received().ids


def verdict(subject: str, text: str, said: str = "clean", **more: Any) -> ScanVerdict:
    fields: Any = {"subject": subject, "text_sha256": text, "score": 0, "ruleset": "r1"} | more
    if subject == "converted":
        fields.setdefault("meta_sha256", META)
    return ScanVerdict(**IDS, verdict=said, **fields)


def life() -> list[Event]:
    """One attempt that went well."""
    return [
        received(),
        Parsed(**IDS, parsed_sha256=PARSE, parser="p", language="en"),
        verdict("parsed", PARSE),
        Converted(
            **IDS, body_sha256=BODY, meta_sha256=META, body_bytes=9, converter="c", language="en"
        ),
        verdict("converted", BODY),
        Chunked(
            **IDS, body_sha256=BODY, meta_sha256=META, chunks_sha256=CHUNKS, chunk_count=1,
            chunker="h",
        ),
        Indexed(
            **IDS, body_sha256=BODY, chunks_sha256=CHUNKS, chunk_count=1, embedder="e",
            embedded=1, reused=0,
        ),
    ]  # fmt: skip


def released(subject: str, text: str, meta: str | None = None) -> Released:
    fields: Any = {"subject": subject, "text_sha256": text, "meta_sha256": meta}
    return Released(**IDS, **fields, reviewer="p", reason="ok")


class History:
    """A log of one version; each job's events carry its id."""

    def __init__(self) -> None:
        self.log, self.job = MemoryLog(), uuid4()

    async def add(self, *events: Event, job: UUID | None = None) -> None:
        for event in events:
            await self.log.append([Pending(event, uuid4(), job or self.job, "test")])

    @property
    def texts(self) -> Texts:
        return Texts(self.log.events)


@pytest.fixture
async def history() -> History:
    made = History()
    await made.add(*life())
    return made


def cleared(texts: Texts) -> str:
    return texts.clearance(BODY, META)


async def test_a_clean_verdict_clears_exactly_that_text_with_that_meta(history: History) -> None:
    assert cleared(history.texts) == "cleared"
    assert history.texts.clearance(BODY, E) == "unknown"
    assert history.texts.clearance(E, META) == "unknown"
    assert history.texts.clearance(PARSE, META) == "unknown"


async def test_what_nobody_cleared_is_unknown_whatever_else_was_said() -> None:
    history = History()
    await history.add(*life()[:4], verdict("converted", BODY, "quarantine"))
    assert cleared(history.texts) == "unknown"


async def test_of_two_words_about_a_text_the_newer_counts(history: History) -> None:
    await history.add(verdict("converted", BODY, "quarantine"))
    assert cleared(history.texts) == "withdrawn"
    await history.add(released("converted", BODY, META))
    assert cleared(history.texts) == "cleared"
    await history.add(verdict("converted", BODY, "block"))
    assert cleared(history.texts) == "withdrawn"


async def test_a_release_of_another_text_clears_nothing(history: History) -> None:
    await history.add(verdict("converted", BODY, "quarantine"), released("converted", E, META))
    assert cleared(history.texts) == "withdrawn"


async def test_a_rejection_keeps_it_out(history: History) -> None:
    await history.add(
        verdict("converted", BODY, "quarantine"),
        Rejected(
            **IDS, subject="converted", text_sha256=BODY, reviewer="p", reason="no"
        ),
    )  # fmt: skip
    assert cleared(history.texts) == "withdrawn"
    assert history.texts.searchable is None


async def test_a_hit_in_hidden_text_of_the_parse_takes_the_body_back(history: History) -> None:
    await history.add(verdict("parsed", PARSE, "quarantine"))
    assert cleared(history.texts) == "withdrawn"
    await history.add(released("parsed", PARSE))
    assert cleared(history.texts) == "cleared"


async def test_a_parse_that_the_body_was_not_made_of_changes_nothing(history: History) -> None:
    await history.add(received(attempt=2), verdict("parsed", E, "quarantine"), job=uuid4())
    assert cleared(history.texts) == "cleared"
    assert history.texts.searchable is not None


async def test_what_is_in_the_index_is_the_cut_that_was_indexed_last(history: History) -> None:
    again = life()[5].model_copy(update={"chunks_sha256": E})
    await history.add(again, job=uuid4())
    assert history.texts.searchable
    assert history.texts.searchable.chunks_sha256 == CHUNKS
    assert history.texts.under_way


async def test_an_erased_version_has_nothing_in_the_index(history: History) -> None:
    await history.add(Erased(**IDS, reason="request", scope="document", blobs=1), job=uuid4())
    texts = history.texts
    assert (texts.live, texts.searchable, texts.at_stake(), texts.under_way) == (
        False, None, [], False,
    )  # fmt: skip
    await history.add(*life(), job=uuid4())
    assert history.texts.searchable is not None


@pytest.mark.parametrize(
    ("steps", "stakes"),
    [
        (1, []),
        (2, []),
        (3, [(None, Text(PARSE))]),
        (4, [(None, Text(PARSE))]),
        (5, [(Text(BODY, META), Text(PARSE))]),
        (6, [(Text(BODY, META), Text(PARSE))]),
        (7, [(Text(BODY, META), Text(PARSE))]),
    ],
)
async def test_at_stake_is_what_is_cleared_and_not_lost(steps: int, stakes: list[Any]) -> None:
    history = History()
    await history.add(*life()[:steps])
    assert history.texts.at_stake() == stakes


@pytest.mark.parametrize("steps", range(3, 6))
async def test_of_an_attempt_that_failed_nothing_is_at_stake(steps: int) -> None:
    history = History()
    await history.add(*life()[:steps], Failed(**IDS, stage="indexer", code="x", reason="y"))
    assert history.texts.at_stake() == []


async def test_a_second_attempt_adds_its_own_text(history: History) -> None:
    newer = [e.model_copy(update={"body_sha256": E} if isinstance(e, Converted) else {})
             for e in life()]  # fmt: skip
    job = uuid4()
    await history.add(*newer[:4], verdict("converted", E), job=job)
    assert history.texts.at_stake() == [
        (Text(BODY, META), Text(PARSE)),
        (Text(E, META), Text(PARSE)),
    ]
    assert history.texts.job == job


async def test_a_cancelled_attempt_is_not_the_newest_job(history: History) -> None:
    job = uuid4()
    await history.add(received(attempt=2), job=job)
    assert history.texts.job == job
    await history.add(Failed(**IDS, stage="ingest", code="cancelled", reason="x"), job=job)
    assert history.texts.job == history.job


async def test_a_late_step_of_a_service_does_not_end_a_review(history: History) -> None:
    await history.add(verdict("parsed", PARSE, "quarantine"), *life()[3:])
    assert history.texts.jobs == {history.job: "review"}
    assert history.texts.searchable is None  # although Indexed came last


async def test_the_word_says_by_which_rules_and_for_whom(history: History) -> None:
    await history.add(verdict("converted", BODY, bypassed=True, ruleset="r2"))
    word = history.texts.words[Text(BODY, META)]
    assert (word.clear, word.ruleset, word.trusted) == (True, "r2", True)


async def test_a_version_is_read_from_its_own_stream(history: History) -> None:
    event = DocumentReceived.model_validate(received().model_dump())
    assert cleared(await texts_of_version(history.log, event)) == "cleared"
    other = received("other.md")
    assert cleared(await texts_of_version(history.log, other)) == "unknown"
