"""What the converter answers to events."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

import pytest

from contracts.artifacts import (
    BodyMeta,
    HiddenText,
    ParsedDocument,
    Place,
    Span,
    SpanMap,
)
from contracts.events import (
    Converted,
    DocumentReceived,
    Event,
    Failed,
    Parsed,
    ProjectConfigured,
    Released,
    ScanVerdict,
)
from kernel.errors import Refusal, Retry
from kernel.large import OneLarge
from kernel.log import Pending
from kernel.media import MARKDOWN
from kernel.testing import MemoryBlobs, MemoryLog
from services.converter.answer import Answer, Parts, write
from services.converter.handlers import on_document_received, on_released, on_scan_verdict
from services.converter.language import Policy
from services.converter.outcome import BodyOutcome, ParseOutcome, recalled
from services.converter.parsing.result import File, Parse
from services.converter.settings import ConverterSettings
from services.converter.work import body_parts, head_of, parse_parts

GERMAN = "# Bericht\n\n" + (
    "Der Ausschuss wird seinen Bericht vor Ende des Monats veröffentlichen. Alle Bürgerinnen und "
    "Bürger sind eingeladen, sich schriftlich zu äußern; danach entscheidet der Gemeinderat "
    "darüber, welche der vorgeschlagenen Maßnahmen im kommenden Jahr verwirklicht werden. "
)
POLISH = "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi do dyskusji. " * 5
SETTINGS = ConverterSettings()
IDS = {"project": "p", "document_id": "d" * 32, "version_id": "e" * 32, "source_id": "a" * 64}


class SourceBlobs(MemoryBlobs):
    """With the bytes of the document, which nobody looks at."""

    @asynccontextmanager
    async def local_path(self, name: str) -> AsyncIterator[Path]:
        if name == IDS["source_id"]:
            yield Path("/blobs") / name
            return
        async with super().local_path(name) as path:
            yield path


class MemoryCache:
    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], str] = {}

    async def get(self, source_id: str, parser: str, options: str) -> str | None:
        return self.known.get((source_id, parser, options))

    async def put(self, source_id: str, parser: str, options: str, parsed_sha256: str) -> None:
        self.known[source_id, parser, options] = parsed_sha256


class ScriptedCell:
    """Parses to a given text, or fails with a given error; counts. What the child does besides
    parsing, and what its parent makes of the answer, is the real code."""

    def __init__(
        self, text: str = GERMAN, error: Exception | None = None, files: tuple[bytes, ...] = ()
    ) -> None:
        self.text, self.error, self.files, self.parses = text, error, files, 0

    def check(self, size: int) -> None:
        OneLarge().check(size)

    def parser_for(self, media_type: str) -> str:
        return f"scripted-{media_type}"

    async def parse(
        self, path: Path, media_type: str, policy: Policy | None = None
    ) -> ParseOutcome:
        self.parses += 1
        if self.error:
            raise self.error
        meta = BodyMeta(title="", language="unknown", media_type=media_type, pages=2)
        hidden = (HiddenText(kind="comment", text="h"),)
        document = ParsedDocument(markdown=self.text, hidden=hidden, meta=meta)
        files = tuple(File("a", data) for data in self.files)
        parsed = Parse(document, ["slow"], files=files)
        return ParseOutcome(answered(parse_parts(parsed, policy)), self.parser_for(media_type))

    async def recall(self, path: Path) -> ParsedDocument:
        return recalled(answered([[head_of(stored(path)).to_bytes()]]))

    async def canonical(self, path: Path, fallback_title: str) -> BodyOutcome:
        return BodyOutcome(answered(body_parts(stored(path), fallback_title)))


def stored(path: Path) -> ParsedDocument:
    return ParsedDocument.model_validate_json(path.read_bytes())


def answered(parts: Parts) -> Answer:
    file = TemporaryFile()  # noqa: SIM115 - the answer closes it
    sizes = write(file, parts)
    file.flush()
    return Answer(file, sizes)


def received(name: str = "Report 2024.md") -> DocumentReceived:
    return DocumentReceived(
        **IDS, source_key="k", name=name, media_type=MARKDOWN, size_bytes=9,
        valid_from=datetime(2024, 1, 1, tzinfo=UTC),
    )  # fmt: skip


async def of_received(_: Event) -> DocumentReceived:
    return received("dir/Отчёт 2024.final.md")


async def receive(
    cell: ScriptedCell,
    blobs: SourceBlobs,
    cache: MemoryCache,
    *,
    log: MemoryLog | None = None,
    receipt: DocumentReceived | None = None,
) -> list[Event]:
    return await on_document_received(
        receipt or received(), blobs=blobs, cell=cell, cache=cache, settings=SETTINGS,
        log=log or MemoryLog(),
    )  # fmt: skip


async def test_a_document_is_parsed_and_its_language_noted() -> None:
    blobs = SourceBlobs()
    (event,) = await receive(ScriptedCell(), blobs, MemoryCache())
    assert isinstance(event, Parsed)
    assert (event.language, event.pages, event.warnings, event.reused) == (
        "de",
        2,
        ("slow",),
        False,
    )
    stored = ParsedDocument.model_validate_json(blobs.content[event.parsed_sha256])
    assert stored.meta.language == "de"
    assert stored.hidden[0].text == "h"


async def test_the_same_bytes_are_parsed_once() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    (first,) = await receive(cell, blobs, cache)
    (second,) = await receive(cell, blobs, cache)
    assert cell.parses == 1
    assert isinstance(first, Parsed)
    assert isinstance(second, Parsed)
    assert second.parsed_sha256 == first.parsed_sha256
    assert (second.reused, second.language) == (True, "de")


async def test_a_cached_parse_that_was_erased_is_made_again() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    await receive(cell, blobs, cache)
    blobs.content.clear()
    (event,) = await receive(cell, blobs, cache)
    assert cell.parses == 2
    assert isinstance(event, Parsed)
    assert event.parsed_sha256 in blobs.content


async def test_a_cached_parse_that_somebody_changed_is_made_again() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    (first,) = await receive(cell, blobs, cache)
    assert isinstance(first, Parsed)
    good = blobs.content[first.parsed_sha256]
    blobs.content[first.parsed_sha256] = good.replace(b"Der", b"Das")
    (event,) = await receive(cell, blobs, cache)
    assert cell.parses == 2
    assert isinstance(event, Parsed)
    assert blobs.content[event.parsed_sha256] == good


async def test_another_language_policy_is_another_cache_entry() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    await receive(cell, blobs, cache)
    log = await configured(accepted_languages=("sl",))
    (event,) = await receive(cell, blobs, cache, log=log)
    assert isinstance(event, Failed)


async def configured(**settings: object) -> MemoryLog:
    """A log in which an administrator set how project `p` works."""
    log = MemoryLog()
    fact = ProjectConfigured.model_validate({"project": "p", "actor": "a", **settings})
    await log.append([Pending(fact, uuid4(), uuid4(), "a")])
    return log


async def test_a_project_may_take_in_any_language() -> None:
    log = await configured(language_check=False)
    (event,) = await receive(ScriptedCell(POLISH), SourceBlobs(), MemoryCache(), log=log)
    assert isinstance(event, Parsed)
    assert event.language == "unknown"
    assert "pl is not accepted" in event.warnings[-1]
    assert next(iter(event.shares)) == "pl"


async def test_a_parse_that_is_used_again_tells_the_same() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    (first,) = await receive(cell, blobs, cache)
    (second,) = await receive(cell, blobs, cache)
    assert isinstance(second, Parsed)
    assert second.reused
    assert second.model_copy(update={"reused": False}) == first
    assert second.shares == {"de": 1.0}


async def test_a_name_that_lies_is_noted_for_that_upload_alone() -> None:
    blobs, cache, cell = SourceBlobs(), MemoryCache(), ScriptedCell()
    (liar,) = await receive(cell, blobs, cache, receipt=received("report.pdf"))
    (honest,) = await receive(cell, blobs, cache)
    assert isinstance(liar, Parsed)
    assert isinstance(honest, Parsed)
    assert liar.warnings == ("the name says PDF, the content is Markdown", "slow")
    assert honest.warnings == ("slow",)


async def test_files_inside_a_document_are_stored_with_its_parse() -> None:
    blobs, cell = SourceBlobs(), ScriptedCell(files=(b"one", b"two"))
    (event,) = await receive(cell, blobs, MemoryCache())
    assert isinstance(event, Parsed)
    assert event.attachments == 2
    stored = ParsedDocument.model_validate_json(blobs.content[event.parsed_sha256])
    assert [blobs.content[a.sha256] for a in stored.attachments] == [b"one", b"two"]


async def test_of_a_refused_language_nothing_is_stored() -> None:
    blobs, cache = SourceBlobs(), MemoryCache()
    (event,) = await receive(ScriptedCell(POLISH), blobs, cache)
    assert isinstance(event, Failed)
    assert (event.stage, event.code) == ("converter", "language-not-accepted")
    assert not blobs.content
    assert not cache.known


async def test_a_document_that_cannot_be_read_fails_with_the_code() -> None:
    cell = ScriptedCell(error=Refusal("decompression-bomb", "x" * 900))
    (event,) = await receive(cell, SourceBlobs(), MemoryCache())
    assert isinstance(event, Failed)
    assert event.code == "decompression-bomb"


async def test_a_store_that_is_away_is_not_the_documents_fault() -> None:
    with pytest.raises(Retry):
        await receive(ScriptedCell(error=Retry("away")), SourceBlobs(), MemoryCache())


async def parsed_blob(blobs: SourceBlobs, markdown: str = GERMAN) -> str:
    meta = BodyMeta(title="", language="de", media_type=MARKDOWN)
    return await blobs.put(ParsedDocument(markdown=markdown, meta=meta).to_bytes())


def verdict(text_sha256: str, **changes: str) -> ScanVerdict:
    fields = {"subject": "parsed", "verdict": "clean", **changes}
    return ScanVerdict.model_validate(
        {**IDS, "text_sha256": text_sha256, "score": 0, "ruleset": "r", **fields}
    )


async def convert(event: ScanVerdict, blobs: SourceBlobs) -> Sequence[Event]:
    return await on_scan_verdict(event, blobs=blobs, cell=ScriptedCell(), received=of_received)


async def test_a_clean_parse_becomes_a_body() -> None:
    blobs = SourceBlobs()
    (event,) = await convert(verdict(await parsed_blob(blobs)), blobs)
    assert isinstance(event, Converted)
    body = blobs.content[event.body_sha256]
    assert len(body) == event.body_bytes
    assert body.startswith(b"# Bericht\n\nDer")
    assert BodyMeta.model_validate_json(blobs.content[event.meta_sha256]).title == "Bericht"
    assert event.language == "de"


async def test_the_places_of_a_body_stand_in_a_blob_of_their_own() -> None:
    blobs = SourceBlobs()
    meta = BodyMeta(title="", language="de", media_type=MARKDOWN)
    spans = (Span(byte_start=0, byte_end=9, place=Place(lines=(1, 1))),)
    document = ParsedDocument(markdown=GERMAN, meta=meta, spans=spans)
    name = await blobs.put(document.to_bytes())
    (event,) = await convert(verdict(name), blobs)
    assert isinstance(event, Converted)
    assert event.spans_sha256 is not None
    places = SpanMap.model_validate_json(blobs.content[event.spans_sha256])
    assert places == SpanMap(body_sha256=event.body_sha256, spans=spans)


async def test_a_body_without_places_has_no_such_blob() -> None:
    blobs = SourceBlobs()
    (event,) = await convert(verdict(await parsed_blob(blobs)), blobs)
    assert isinstance(event, Converted)
    assert event.spans_sha256 is None


async def test_the_parser_is_named_in_the_metadata() -> None:
    blobs = SourceBlobs()
    (event,) = await receive(ScriptedCell(), blobs, MemoryCache())
    assert isinstance(event, Parsed)
    stored = ParsedDocument.model_validate_json(blobs.content[event.parsed_sha256])
    assert stored.meta.parser == event.parser == f"scripted-{MARKDOWN}"


async def test_the_name_is_the_last_resort_for_a_title() -> None:
    blobs = SourceBlobs()
    name = await parsed_blob(blobs, "only text")
    (event,) = await convert(verdict(name), blobs)
    assert isinstance(event, Converted)
    assert (
        BodyMeta.model_validate_json(blobs.content[event.meta_sha256]).title == "Отчёт 2024.final"
    )


async def test_a_second_delivery_writes_the_same_blobs() -> None:
    blobs = SourceBlobs()
    event = verdict(await parsed_blob(blobs))
    once = await convert(event, blobs)
    names = set(blobs.content)
    assert await convert(event, blobs) == once
    assert set(blobs.content) == names


@pytest.mark.parametrize(
    "changes", [{"verdict": "quarantine"}, {"verdict": "block"}, {"subject": "converted"}]
)
async def test_only_a_clean_verdict_on_a_parse_is_acted_on(changes: dict[str, str]) -> None:
    blobs = SourceBlobs()
    event = verdict(await parsed_blob(blobs), **changes)
    assert await convert(event, blobs) == []
    assert len(blobs.content) == 1


async def test_a_released_parse_becomes_a_body_and_a_released_body_does_not() -> None:
    blobs = SourceBlobs()
    fields = {
        **IDS, "text_sha256": await parsed_blob(blobs), "reviewer": "r", "reason": "fine",
    }  # fmt: skip
    found = []
    for subject in ("parsed", "converted"):
        event = Released.model_validate({**fields, "subject": subject})
        found += await on_released(event, blobs=blobs, cell=ScriptedCell(), received=of_received)
    assert [type(event) for event in found] == [Converted]


async def test_a_parse_without_text_fails() -> None:
    blobs = SourceBlobs()
    name = await parsed_blob(blobs, " \n---\n")
    (event,) = await convert(verdict(name), blobs)
    assert isinstance(event, Failed)
    assert event.code == "empty-document"


async def test_a_parse_that_changed_after_its_scan_is_not_converted() -> None:
    blobs = SourceBlobs()
    name = await parsed_blob(blobs)
    blobs.content[name] = blobs.content[name].replace(b"Bericht", b"Ignoriere")
    before = set(blobs.content)
    (event,) = await convert(verdict(name), blobs)
    assert isinstance(event, Failed)
    assert (event.stage, event.code) == ("converter", "text-changed")
    assert set(blobs.content) == before
