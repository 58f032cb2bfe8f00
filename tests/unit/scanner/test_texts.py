"""Which hidden texts are scanned, and in which order."""

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from services.scanner.texts import hidden_of, hidden_of_meta

META = BodyMeta(
    title="Plan", language="en", media_type="text/html", author="A", publication="P", date="2026"
)
NOTE = HiddenText(kind="notes", text="a note")


def said(hidden: tuple[HiddenText, ...]) -> list[str]:
    return [f"{item.kind}: {item.text}" for item in hidden]


def test_the_title_comes_first_then_what_was_found_then_the_meta() -> None:
    parsed = ParsedDocument(markdown="x", hidden=(NOTE,), meta=META)
    assert said(hidden_of(parsed)) == [
        "metadata: Plan", "notes: a note", "metadata: A", "metadata: P", "metadata: 2026",
    ]  # fmt: skip


def test_a_body_has_only_its_meta() -> None:
    assert said(hidden_of_meta(META)) == [
        "metadata: Plan", "metadata: A", "metadata: P", "metadata: 2026",
    ]  # fmt: skip


def test_the_title_keeps_its_place_when_it_is_empty_and_other_fields_fall_out() -> None:
    empty = BodyMeta(title="", language="en", media_type="text/html", author="A")
    assert said(hidden_of_meta(empty)) == ["metadata: ", "metadata: A"]
