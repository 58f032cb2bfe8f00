"""What the child process does besides parsing: judge the language, make the body, and tell it all
in parts of an answer."""

import hashlib

from contracts.artifacts import Attachment, ParsedDocument, ParseNotes
from services.converter.answer import Parts, encoded, listed
from services.converter.domain import settled
from services.converter.language import Judged, Policy, judge
from services.converter.lines import body_pieces
from services.converter.parsing.result import Parse

_MOST_WARNINGS = 100
_LONGEST_WARNING = 300


def parse_parts(parsed: Parse, policy: Policy | None) -> Parts:
    """Head, text, hidden texts, spans, and then the files of a parse.

    The language is judged before anything is told: of a refused one no text may stay. Without
    `policy` it is not judged.

    Raises:
        Refusal: `language-not-accepted`.
    """
    document = parsed.document
    judged = None
    if policy is not None:
        judged = judge(document.markdown, policy.accepted, check=policy.check)
    attachments = tuple(
        Attachment(
            name=file.name, sha256=hashlib.sha256(file.data).hexdigest(), size_bytes=len(file.data)
        )
        for file in parsed.files
    )
    told = {"attachments": attachments, "notes": _notes(parsed, judged)}
    if judged is not None:
        told["meta"] = document.meta.model_copy(update={"language": judged.language})
    head = head_of(document.model_copy(update=told))
    text, hidden, spans = (
        encoded(document.markdown),
        listed(document.hidden),
        listed(document.spans),
    )
    return [[head.to_bytes()], text, hidden, spans, *([file.data] for file in parsed.files)]


def _notes(parsed: Parse, judged: Judged | None) -> ParseNotes:
    warnings = [warning[:_LONGEST_WARNING] for warning in parsed.warnings[:_MOST_WARNINGS]]
    return ParseNotes(
        warnings=(*warnings, *(judged.warnings if judged else ())),
        shares=judged.shares if judged else {},
        missing_pages=parsed.missing_pages,
        readings=parsed.readings,
    )


def head_of(document: ParsedDocument) -> ParsedDocument:
    """All of a document but its text."""
    return document.model_copy(update={"markdown": "", "hidden": (), "spans": ()})


def body_parts(document: ParsedDocument, fallback_title: str) -> Parts:
    """Metadata, body and spans of a parse; of one without text the body is empty."""
    lines, meta, spans = settled(document, fallback_title)
    return [[meta.to_bytes()], (text.encode() for text in body_pieces(lines)), listed(spans)]
