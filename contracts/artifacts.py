"""Shapes of the blobs that events point at: parse, body meta, span map, chunk manifest,
summary."""

from bisect import bisect_right
from itertools import takewhile

from pydantic import BaseModel, ConfigDict, Field

from contracts.events import HiddenKind, Reading, Sha256


class Artifact(BaseModel):
    """A blob with a schema; canonical bytes by `to_bytes`, so equal content has one name."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    def to_bytes(self) -> bytes:
        """UTF-8 JSON, fields in declaration order."""
        return self.__pydantic_serializer__.to_json(self)


class HiddenText(Artifact):
    """Text that a reader of the page does not see, kept for the scanner only."""

    kind: HiddenKind
    text: str


class BodyMeta(Artifact):
    """What the front matter says besides the fields that change with time."""

    title: str = Field(max_length=500)
    language: str
    media_type: str
    author: str | None = None
    date: str | None = None
    publication: str | None = None
    pages: int | None = None
    parser: str | None = None


class Place(Artifact):
    """Where in the source a span of Markdown came from; only what the format has is set.

    `page` is a page or slide, from 1; `box` is (left, top, right, bottom) in points from the top
    left corner of that page as it is shown. `sheet` and `cells` (`B2:D2`) are a spreadsheet's.
    `path` is an XPath of element positions within `part`, an entry of a container
    (`word/document.xml`, a chapter of an EPUB, `body` of a mail), or within the file itself.
    `lines` are the first and last line of a text file, from 1.
    """

    page: int | None = Field(None, ge=1)
    box: tuple[float, float, float, float] | None = None
    sheet: str | None = None
    cells: str | None = None
    part: str | None = None
    path: str | None = None
    lines: tuple[int, int] | None = None


class Span(Artifact):
    """`text[byte_start:byte_end]` (UTF-8 bytes) came from `place`."""

    byte_start: int = Field(ge=0)
    byte_end: int = Field(gt=0)
    place: Place


class SpanMap(Artifact):
    """Spans of a body in ascending order, none over another; what has no place has no span."""

    body_sha256: Sha256
    spans: tuple[Span, ...]

    def within(self, byte_start: int, byte_end: int) -> tuple[Span, ...]:
        """The spans that touch `body[byte_start:byte_end]`."""
        first = bisect_right(self.spans, byte_start, key=lambda span: span.byte_end)
        return tuple(takewhile(lambda s: s.byte_start < byte_end, self.spans[first:]))


class Attachment(Artifact):
    """A file inside the document, in the blob store; it becomes a document of its own."""

    name: str = Field(max_length=255)
    sha256: Sha256
    size_bytes: int = Field(gt=0)


class ParseNotes(Artifact):
    """What a journal says about a parse; the fields are those of `contracts.events.Parsed`."""

    warnings: tuple[str, ...] = ()
    shares: dict[str, float] = {}
    missing_pages: tuple[int, ...] = ()
    readings: tuple[Reading, ...] = ()


class ParsedDocument(Artifact):
    """Deterministic parse: Markdown as a reader sees it, and what was hidden from him.

    `spans` are over `markdown`, in the order and form of a `SpanMap`. `notes` are kept with it, so
    that a parse which is used again tells the same.
    """

    markdown: str
    hidden: tuple[HiddenText, ...] = ()
    meta: BodyMeta
    spans: tuple[Span, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    notes: ParseNotes = ParseNotes()


class Chunk(Artifact):
    """A passage: `body[byte_start:byte_end]`, UTF-8 bytes.

    `context` is a text put before the passage for the embedder only (a table's paragraph);
    `tokens` counts the embedded text, breadcrumb and context included.
    """

    chunk_id: str
    heading_path: tuple[str, ...]
    byte_start: int = Field(ge=0)
    byte_end: int = Field(gt=0)
    tokens: int = Field(gt=0)
    language: str
    context: str = ""


class ChunkManifest(Artifact):
    """All chunks of one body in reading order."""

    body_sha256: Sha256
    chunker: str
    title: str
    chunks: tuple[Chunk, ...]


class Sentence(Artifact):
    """`body[byte_start:byte_end]`, and its words without markup.

    One that is too long is cut: its words then end in `…`, and the bytes where they end.
    """

    text: str
    byte_start: int = Field(ge=0)
    byte_end: int = Field(gt=0)


class SectionSummary(Artifact):
    """A heading of the outline, how far its own text goes, and the best of it.

    `depth` is the heading's, 1 to 6; 0: text before the first heading, or all of a body without an
    outline.
    """

    heading_path: tuple[str, ...]
    depth: int = Field(ge=0, le=6)
    byte_start: int = Field(ge=0)
    byte_end: int = Field(ge=0)
    digest: tuple[Sentence, ...] = ()


class Summary(Artifact):
    """Three levels: `lead` is one sentence for the whole body, the headings of `sections` are the
    outline, and each has its digest.

    `outline` False: the body has no headings to speak of, and `sections` is one digest of all of
    it. `left_out`: headings for which there was no room.
    """

    body_sha256: Sha256
    summariser: str
    language: str
    outline: bool
    lead: Sentence | None
    sections: tuple[SectionSummary, ...]
    left_out: int = Field(0, ge=0)


LONGEST_BREADCRUMB = 300
"""Characters: it must leave the larger part of an embedded text to the passage."""


def breadcrumb(title: str, heading_path: tuple[str, ...]) -> str:
    """`[Title > Heading > Subheading]`; a first heading that repeats the title is not doubled.

    In one that would be too long, each part is cut to an equal share of `LONGEST_BREADCRUMB`.
    """
    path = heading_path[1:] if heading_path and heading_path[0] == title else heading_path
    parts = (title, *path)
    if sum(map(len, parts)) + 3 * len(path) + 2 > LONGEST_BREADCRUMB:
        share = max(8, (LONGEST_BREADCRUMB - 2) // len(parts) - 3)
        parts = tuple(p if len(p) <= share else f"{p[: share - 1].rstrip()}…" for p in parts)
    return f"[{' > '.join(parts)}]"


def embedded_text(title: str, heading_path: tuple[str, ...], context: str, passage: str) -> str:
    """What is embedded, analysed for keywords and returned: breadcrumb, context, passage."""
    parts = (breadcrumb(title, heading_path), context, passage)
    return "\n".join(part for part in parts if part)
