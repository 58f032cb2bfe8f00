"""What of a document is scanned besides its text: what a reader does not see, and its meta."""

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument


def hidden_of(parsed: ParsedDocument) -> tuple[HiddenText, ...]:
    """The hidden texts of a parse: its title, what the converter found, the other fields.

    `Finding.hidden_index` counts in this order, from 0; the title is always there.
    """
    return (_metadata(parsed.meta.title), *parsed.hidden, *_fields(parsed.meta))


def hidden_of_meta(meta: BodyMeta) -> tuple[HiddenText, ...]:
    """The same for a converted body, which keeps no other hidden text."""
    return (_metadata(meta.title), *_fields(meta))


def _fields(meta: BodyMeta) -> tuple[HiddenText, ...]:
    values = (meta.author, meta.publication, meta.date)
    return tuple(_metadata(value) for value in values if value)


def _metadata(text: str) -> HiddenText:
    return HiddenText(kind="metadata", text=text)
