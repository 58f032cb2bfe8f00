"""What the body of a PDF is made of: headings, paragraphs, list items and tables, with places."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from services.converter.parsing.layout import Block
from services.converter.parsing.pdf_table import Table

ElementKind = Literal["title", "heading", "text", "list", "table", "code"]


class Part(NamedTuple):
    """Where a part of an element stands; `start` is its offset in the text, or a table's row."""

    start: int
    page: int
    block: Block


@dataclass(slots=True)
class Element:
    """A piece of the document; `level` from 1 for headings below the title and for list items.

    `page` and `block` are the first of its `parts`, the others those that it goes on in.
    """

    kind: ElementKind
    text: str
    page: int
    block: Block
    level: int = 0
    marker: str = ""
    table: Table | None = None
    parts: list[Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = [Part(0, self.page, self.block)]

    def extend(self, text: str, other: "Element") -> None:
        """Take `other` in; `text` is that of both and ends with that of `other`."""
        shift = len(text) - len(other.text)
        self.parts += [Part(max(0, p.start + shift), p.page, p.block) for p in other.parts]
        self.text = text

    @property
    def last(self) -> Part:
        """Where the element ends."""
        return self.parts[-1]
