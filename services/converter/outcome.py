"""What became of a document in the child process, checked as it is read."""

from collections.abc import Iterator
from typing import Self

from pydantic import ValidationError
from pydantic_core import to_json

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Span, SpanMap
from kernel.blobs import sha256_of
from services.converter.answer import Answer, json_list, json_object, json_string, senseless

_HEAD, _TEXT, _HIDDEN, _SPANS, _FILES = range(5)
_META, _BODY, _PLACES = range(3)
_MOST_WARNINGS = 110
_LONGEST_WARNING = 300


class _OnDisk:
    """An answer that is read as often as one likes, until it is closed."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        self._answer.close()


class ParseOutcome(_OnDisk):
    """A parse. `head`: all of it but `markdown`, `hidden` and `spans`; `parser`: what made it.

    Raises:
        Refusal: `parse-crash`, here and wherever a part is read: it is not what it should be.
    """

    def __init__(self, answer: Answer, parser: str) -> None:
        super().__init__(answer)
        self.parser = parser
        self.head = _labelled(recalled(answer), parser)
        if len(answer.sizes) != _FILES + len(self.head.attachments):
            raise senseless()
        if [a.sha256 for a in self.head.attachments] != [sha256_of(file) for file in self.files]:
            raise senseless()

    @property
    def files(self) -> list[Iterator[bytes]]:
        """The bytes of the attachments, in their order."""
        return [self._answer.pieces(n) for n in range(_FILES, len(self._answer.sizes))]

    @property
    def hidden(self) -> int:
        """How many hidden texts there are."""
        return sum(len(batch) for batch in self._answer.items(_HIDDEN, HiddenText))

    def to_bytes(self) -> Iterator[bytes]:
        """The bytes of the `ParsedDocument`."""
        text, hidden = self._answer.text(_TEXT), self._answer.items(_HIDDEN, HiddenText)
        long = {
            "markdown": json_string(text),
            "hidden": json_list(hidden),
            "spans": json_list(self._answer.items(_SPANS, Span)),
        }
        return json_object(
            (name, long.get(name) or [to_json(getattr(self.head, name))])
            for name in ParsedDocument.model_fields
        )

    @property
    def document(self) -> ParsedDocument:
        """The whole of it, read into memory."""
        return ParsedDocument.model_validate_json(b"".join(self.to_bytes()))


class BodyOutcome(_OnDisk):
    """A body in its canonical form; `size_bytes` of it, 0 if there is no text. Raises as above."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        if len(answer.sizes) != _PLACES + 1:
            raise senseless()
        self.size_bytes = answer.sizes[_BODY]
        self.has_places = answer.sizes[_PLACES] > 0
        try:
            self.meta = BodyMeta.model_validate_json(b"".join(answer.pieces(_META)))
        except ValidationError as error:
            raise senseless() from error

    def to_bytes(self) -> Iterator[bytes]:
        """The body."""
        return (text.encode() for text in self._answer.text(_BODY))

    def places(self, body_sha256: str) -> Iterator[bytes]:
        """The bytes of its `SpanMap`."""
        spans = json_list(self._answer.items(_PLACES, Span))
        fields = {"body_sha256": [to_json(body_sha256)], "spans": spans}
        return json_object((name, fields[name]) for name in SpanMap.model_fields)


def recalled(answer: Answer) -> ParsedDocument:
    """The head of a parse: a document without its text.

    Raises:
        Refusal: `parse-crash`.
    """
    try:
        return ParsedDocument.model_validate_json(b"".join(answer.pieces(_HEAD)))
    except ValidationError as error:
        raise senseless() from error


def _labelled(head: ParsedDocument, parser: str) -> ParsedDocument:
    """With what its child does not decide."""
    meta = head.meta.model_copy(update={"parser": parser})
    warnings = tuple(w[:_LONGEST_WARNING] for w in head.notes.warnings[:_MOST_WARNINGS])
    notes = head.notes.model_copy(update={"warnings": warnings})
    return head.model_copy(
        update={"markdown": "", "hidden": (), "spans": (), "meta": meta, "notes": notes}
    )
