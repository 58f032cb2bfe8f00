"""Documents of a set as the line makes them: canonical body, passages, what is embedded of each."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from contracts.artifacts import BodyMeta, ParsedDocument, embedded_text
from kernel.language import detect
from kernel.media import MARKDOWN
from services.converter.domain import canonical
from services.indexer.chunker import Cut, Reader, cut


@dataclass(frozen=True)
class Text:
    """A document as it is uploaded: Markdown with its title."""

    name: str
    markdown: str


@dataclass(frozen=True)
class Passage:
    """A row of the index; `document` is the name of the uploaded one."""

    document: str
    ordinal: int
    title: str
    heading_path: tuple[str, ...]
    context: str
    body: str
    language: str

    @property
    def text(self) -> str:
        """What is embedded and analysed."""
        return embedded_text(self.title, self.heading_path, self.context, self.body)


def passages_of(texts: Iterable[Text], reader: Reader, *, limit: int = 500) -> Iterator[Passage]:
    """The passages of all texts, one after the other. The scanner is not asked: what it holds back
    (`python -m eval.retrieval` counts it) is in this base."""
    options = Cut(reader.count_tokens, lambda text: detect(text).code, limit)
    options = options.fitted(reader, "heading")
    for text in texts:
        language = detect(text.markdown).code
        meta = BodyMeta(title="", language=language, media_type=MARKDOWN)
        made = canonical(ParsedDocument(markdown=text.markdown, meta=meta), "document")
        body, title = made.body.encode(), made.meta.title
        document_id = hashlib.sha256(text.name.encode()).hexdigest()
        for ordinal, chunk in enumerate(cut(made.body, title, document_id, language, options)):
            passage = body[chunk.byte_start : chunk.byte_end].decode()
            yield Passage(
                text.name, ordinal, title, chunk.heading_path, chunk.context, passage,
                chunk.language,
            )  # fmt: skip
