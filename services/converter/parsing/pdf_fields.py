"""What a PDF holds beside its pages' content: values of form fields, and notes pinned to it."""

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pypdfium2 import raw

from services.converter.parsing.pdf_glyphs import Box, Shown

FieldKind = Literal["value", "choice", "secret"]

_MOST = 5000
_MOST_LETTERS = 1 << 20
_HIDDEN, _NO_VIEW = 1 << 1, 1 << 5
_PASSWORD = 1 << 13
_LEAST_WORDS = 3
_MARKUP = re.compile(r"<[^<>]{0,500}>")
_TEXT = frozenset(
    {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
)
_BOXES = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})


@dataclass(slots=True)
class Field:
    """A field with its value; a `choice` is a box to tick and its value is empty if it is not.

    Of a `secret`, a password, only the place is known.
    `name` is what the form calls it for people; it may be empty.
    """

    box: Box
    kind: FieldKind
    value: str
    name: str


@dataclass
class Beside:
    """Of one page: fields in the order of the file; texts of notes and of fields nobody sees, and
    what fields tell besides their value."""

    fields: list[Field] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    tips: list[str] = field(default_factory=list)


def beside(page: Any) -> Beside:
    """Fields and notes of a page; the document's forms must have been set up before it."""
    found = Beside()
    shown = Shown(page)
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST)):
        with _annotation(page, index) as annotation:
            if not annotation:
                continue
            if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
                found.notes += _notes(annotation)
            elif page.formenv is not None:
                _take_field(page, annotation, shown, found)
    return found


@contextmanager
def _annotation(page: Any, index: int) -> Iterator[Any]:
    annotation = raw.FPDFPage_GetAnnot(page, index)
    try:
        yield annotation
    finally:
        if annotation:
            raw.FPDFPage_CloseAnnot(annotation)


def _take_field(page: Any, annotation: Any, shown: Shown, found: Beside) -> None:
    form = page.formenv
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    rectangle = raw.FS_RECTF()
    if not raw.FPDFAnnot_GetRect(annotation, rectangle):
        return
    box = shown.box(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
    flags = raw.FPDFAnnot_GetFormFieldFlags(form, annotation)
    if kind == raw.FPDF_FORMFIELD_TEXTFIELD and flags & _PASSWORD:
        found.fields.append(Field(box, "secret", "", ""))
        return
    # What a program shows when the pointer rests on a field, and what it shows before it is filled.
    told = [_value(annotation, key) for key in (b"TU", b"DV", b"T", b"TM")]
    found.tips += [text for text in told if len(text.split()) >= _LEAST_WORDS]
    if kind in _TEXT:
        value = _read(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        taken = Field(box, "value", value, "") if value else None
    elif kind in _BOXES:
        ticked = raw.FPDFAnnot_IsChecked(form, annotation)
        taken = Field(box, "choice", "x" if ticked else "", "")
    else:
        taken = None
    if taken is None:
        return
    if raw.FPDFAnnot_GetFlags(annotation) & (_HIDDEN | _NO_VIEW):
        found.unseen += [taken.value] if taken.kind == "value" else []
        return
    taken.name = _read(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    found.fields.append(taken)


def _notes(annotation: Any) -> list[str]:
    """What is pinned to the page says: its text, in plain and in rich form, title and subject."""
    texts = [_value(annotation, key) for key in (b"Contents", b"RC", b"T", b"Subj")]
    texts[1] = _MARKUP.sub(" ", texts[1])
    squeezed = [" ".join(text.split()) for text in texts]
    if squeezed[1] == squeezed[0]:
        texts[1] = ""
    # Names of people and of programs are no notes.
    return [t for n, t in enumerate(texts) if t and (n < 2 or len(t.split()) >= _LEAST_WORDS)]


def _value(annotation: Any, key: bytes) -> str:
    return _read(lambda a, *rest: raw.FPDFAnnot_GetStringValue(a, key, *rest), annotation)


def _read(get: Callable[..., int], *arguments: Any) -> str:
    """A text that pdfium writes as UTF-16 into a buffer; it says how many bytes it needs."""
    size = get(*arguments, None, 0)
    if not 2 < size <= 2 * _MOST_LETTERS:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    get(*arguments, buffer, size)
    text = bytes(buffer)[: size - 2].decode("utf-16-le", "replace")
    return "\n".join(" ".join(line.split()) for line in text.splitlines()).strip()
