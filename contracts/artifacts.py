"""Shapes of the blobs that events point at: parse, body meta, chunk manifest."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from contracts.events import Sha256

HiddenKind = Literal[
    "comment", "invisible-style", "off-page", "zero-size", "background-colour", "metadata",
    "alt-text", "notes", "tracked-change", "script", "attribute",
]  # fmt: skip


class Artifact(BaseModel):
    """A blob with a schema; canonical bytes by `to_bytes`, so equal content has one name."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def to_bytes(self) -> bytes:
        """UTF-8 JSON, fields in declaration order."""
        return self.model_dump_json().encode()


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


class ParsedDocument(Artifact):
    """Deterministic parse: Markdown as a reader sees it, and what was hidden from him."""

    markdown: str
    hidden: tuple[HiddenText, ...] = ()
    meta: BodyMeta


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
