"""What a child answers: told in parts, put together to the same bytes, believed in nothing."""

import json
from collections.abc import Iterable
from hashlib import sha256
from tempfile import TemporaryFile

import pytest

from contracts.artifacts import (
    Attachment,
    BodyMeta,
    HiddenText,
    ParsedDocument,
    ParseNotes,
    Place,
    Span,
    SpanMap,
)
from contracts.events import Reading
from kernel.errors import Refusal
from kernel.media import MARKDOWN, PLAIN
from services.converter.answer import Answer, Parts, encoded, listed, write
from services.converter.domain import canonical
from services.converter.language import Policy, judge
from services.converter.outcome import BodyOutcome, ParseOutcome
from services.converter.parsing.result import File, Parse
from services.converter.work import body_parts, parse_parts
from tests.documents import markdown

TEXTS = (
    "",
    "a",
    '# Über „Größe“\n\nÇa \\"x\\" 🙂 \x01\x7f\u2028 end\n',
    "Жук " * 400_000,
    "🙂 " * 400_000 + "\n",
    'quoted "text" and \\ back\n' * 60_000,
    markdown().decode(),
)
PARSER = "scripted-1"


def answered(parts: Parts) -> Answer:
    file = TemporaryFile()  # noqa: SIM115 - the answer closes it
    sizes = write(file, parts)
    file.flush()
    return Answer(file, sizes)


def parse_of(text: str, spans: int = 0, hidden: int = 0, files: tuple[bytes, ...] = ()) -> Parse:
    meta = BodyMeta(title="Größe", language="unknown", media_type=MARKDOWN, author='"A"')
    places = tuple(
        Span(byte_start=n, byte_end=n + 1, place=Place(page=n + 1, box=(0.1, n / 7, 1e-9, 3.0)))
        for n in range(spans)
    )
    texts = tuple(HiddenText(kind="comment", text=f"verborgen {n}\n") for n in range(hidden))
    document = ParsedDocument(markdown=text, meta=meta, spans=places, hidden=texts)
    reading = Reading(page=1, engine="tesseract", scores={"tesseract": 0.5, "rapidocr": 0.125})
    return Parse(
        document, [f"warning {n}" for n in range(3)], missing_pages=(2, 5), readings=(reading,),
        files=tuple(File(f"file {n}", data) for n, data in enumerate(files)),
    )  # fmt: skip


def as_one(parsed: Parse) -> ParsedDocument:
    """The document that was stored when it was still put together in memory."""
    judged = judge(parsed.document.markdown, check=False)
    meta = parsed.document.meta.model_copy(update={"language": judged.language, "parser": PARSER})
    notes = ParseNotes(
        warnings=(*parsed.warnings, *judged.warnings), shares=judged.shares,
        missing_pages=parsed.missing_pages, readings=parsed.readings,
    )  # fmt: skip
    attachments = tuple(
        Attachment(name=f.name, sha256=sha256(f.data).hexdigest(), size_bytes=len(f.data))
        for f in parsed.files
    )
    changes = {"meta": meta, "notes": notes, "attachments": attachments}
    return parsed.document.model_copy(update=changes)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("count", [0, 500, 1201])
def test_a_parse_has_the_bytes_that_it_has_in_one(text: str, count: int) -> None:
    parsed = parse_of(text, spans=count, hidden=count, files=(b"one", b"2" * 3_000_000))
    with ParseOutcome(answered(parse_parts(parsed, Policy(check=False))), PARSER) as outcome:
        assert b"".join(outcome.to_bytes()) == as_one(parsed).to_bytes()
        assert [b"".join(file) for file in outcome.files] == [b"one", b"2" * 3_000_000]
        assert outcome.hidden == count


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_body_has_the_bytes_that_it_has_in_one(text: str) -> None:
    document = parse_of(text, spans=min(700, len(text.encode()))).document
    body, meta, spans = canonical(document, "x")
    with BodyOutcome(answered(body_parts(document, "x"))) as outcome:
        assert b"".join(outcome.to_bytes()) == body.encode()
        assert outcome.size_bytes == len(body.encode())
        assert outcome.meta == meta
        name = sha256(body.encode()).hexdigest()
        whole = SpanMap(body_sha256=name, spans=spans).to_bytes()
        assert b"".join(outcome.places(name)) == whole
        assert outcome.has_places == bool(spans)


# --- a child that a document took over ------------------------------------------------------------


def head(**changes: object) -> bytes:
    meta = BodyMeta(title="", language="de", media_type=PLAIN)
    document = ParsedDocument(markdown="", meta=meta).model_dump(mode="json")
    return json.dumps({**document, **changes}).encode()


def crashed(parts: Iterable[Iterable[bytes]]) -> str:
    """The code of the refusal that making or reading the outcome ends with."""
    with pytest.raises(Refusal) as refused:
        b"".join(ParseOutcome(answered(parts), PARSER).to_bytes())
    return refused.value.code


STOLEN = {"name": "a", "sha256": "f" * 64, "size_bytes": 3}


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [[b"{}"], [], [], []],
        [[head()], [], []],
        [[head()], [], [], [], [b"a file that no head names"]],
        [[head(attachments=[STOLEN])], [], [], []],
        [[head(attachments=[STOLEN])], [], [], [], [b"abc"]],
        [[head()], [b"\xff"], [], []],
        [[head()], [b"cut \xd0"], [], []],
        [[head()], [], [b"no list\n"], []],
        [[head()], [], [b'[{"kind": "comment", "text": "no line end"}]'], []],
        [[head()], [], [], [b'[{"byte_start": -1, "byte_end": 1, "place": {}}]\n']],
    ],
)
def test_what_no_parser_says_is_a_crash(parts: list[list[bytes]]) -> None:
    assert crashed(parts) == "parse-crash"


def test_no_text_can_name_an_attachment_or_change_a_field() -> None:
    evil = b'","attachments":[{"name":"a","sha256":"' + b"f" * 64 + b'","size_bytes":1}],"x":"'
    with ParseOutcome(answered([[head()], [evil], [], []]), PARSER) as outcome:
        found = ParsedDocument.model_validate_json(b"".join(outcome.to_bytes()))
    assert found.markdown == evil.decode()
    assert not found.attachments


def test_a_head_cannot_smuggle_text_past_the_parts() -> None:
    smuggled = head(markdown="other", hidden=[{"kind": "comment", "text": "x"}])
    with ParseOutcome(answered([[smuggled], [b"text"], [], []]), PARSER) as outcome:
        found = ParsedDocument.model_validate_json(b"".join(outcome.to_bytes()))
    assert (found.markdown, found.hidden, found.meta.parser) == ("text", (), PARSER)


def test_an_answer_that_is_cut_off_is_a_crash() -> None:
    file = TemporaryFile()  # noqa: SIM115 - the test ends with it
    file.write(b"abc")
    file.flush()
    for sizes in ([4], [-1, 4], []):
        with pytest.raises(Refusal) as refused:
            Answer(file, sizes)
        assert refused.value.code == "parse-crash"


def test_a_body_that_is_no_text_is_a_crash() -> None:
    meta = BodyMeta(title="", language="de", media_type=PLAIN).to_bytes()
    for parts in ([[meta], [b"\xff"], []], [[b"{}"], [b"a"], []], [[meta], [b"a"]]):
        with pytest.raises(Refusal) as refused:
            b"".join(BodyOutcome(answered(parts)).to_bytes())
        assert refused.value.code == "parse-crash"


def test_pieces_are_small_however_large_the_text() -> None:
    sizes = [len(piece) for piece in encoded("Ж" * 5_000_000)]
    assert sum(sizes) == 10_000_000
    assert max(sizes) <= 4 << 20
    lines = list(listed([HiddenText(kind="comment", text="x")] * 1201))
    assert len(lines) == 3
