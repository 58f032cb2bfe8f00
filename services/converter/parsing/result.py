"""What a parser gives back."""

from dataclasses import dataclass, field
from typing import NamedTuple

from contracts.artifacts import ParsedDocument
from contracts.events import Reading


class File(NamedTuple):
    """A file found inside a document: it will be a document of its own."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Parse:
    """A document, and what its journal should say.

    `document.attachments` is filled from `files` by the child process; a parser leaves it empty.
    `missing_pages` and `readings` are those of `contracts.events.Parsed`.
    """

    document: ParsedDocument
    warnings: list[str] = field(default_factory=list)
    missing_pages: tuple[int, ...] = ()
    readings: tuple[Reading, ...] = ()
    files: tuple[File, ...] = ()
