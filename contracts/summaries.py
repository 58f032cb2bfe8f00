"""Bodies of the HTTP API that tell a document in short."""

from typing import Literal

from contracts.http import Body


class SummarySentence(Body):
    """A sentence of the document; `byte_start`, `byte_end`: where it stands in the body.

    `text` are its words without markup, and with `…` at the end only its first ones.
    """

    text: str
    byte_start: int
    byte_end: int


class SummarySection(Body):
    """A heading and the best sentences of the text below it, up to the next heading.

    `depth` 0: text before the first heading, or the whole of a body without an outline.
    """

    heading_path: list[str]
    depth: int
    byte_start: int
    byte_end: int
    digest: list[SummarySentence]


class SummaryView(Body):
    """A version in three levels: one sentence (`lead`), the outline, a digest of each section.

    `levels` `1-2.5`: a text without headings to speak of has no outline, its one section is all of
    it. `left_out`: headings for which there was no room. Offsets are UTF-8 bytes into the body,
    `GET /documents/{version_id}/body`. `text` is all of it for a model to read, as untrusted data
    between two lines `<NAME note="…">` and `</NAME>`, where NAME is `fence`. All other words are a
    stranger's too, and not fenced; characters that a reader does not see are shown in them.
    """

    source_id: str
    document_id: str
    version_id: str
    project: str
    title: str
    language: str
    summariser: str
    levels: Literal["1-2-3", "1-2.5"]
    lead: SummarySentence | None
    sections: list[SummarySection]
    left_out: int
    text: str
    fence: str
