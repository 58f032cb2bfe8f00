"""Filled-in fields of a form, fitted into the words of its page: each with its label.

Coordinates are points with the origin at the top left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.pdf_table import Cell, Table

_WIDTH = 0.5
_NEAR_LEFT = 14.0
_TICKED, _OPEN = "☒", "☐"


@dataclass(slots=True)
class FormField:
    """A field on a page; the value of a `choice` is empty if it is not ticked."""

    left: float
    top: float
    right: float
    bottom: float
    kind: Literal["value", "choice", "secret"]
    value: str
    name: str = ""


def without_values(words: Sequence[Word], fields: Sequence[FormField]) -> list[Word]:
    """The words that are not a field's own: some files draw the values, some do not."""
    return [word for word in words if not any(_is_of(word, field) for field in fields)]


def _is_of(word: Word, field: FormField) -> bool:
    across = field.left - 1 <= (word.left + word.right) / 2 <= field.right + 1
    if not (across and field.top - 1 <= word.middle <= field.bottom + 1):
        return False
    if field.kind == "secret":
        return True
    return word.text in field.value or (field.kind == "choice" and len(word.text) == 1)


def value_words(fields: Sequence[FormField], words: Sequence[Word]) -> list[Word]:
    """The values as words at their place; a box that is not ticked is one too."""
    size = median(word.size for word in words) if words else 10.0
    return [_value_word(field, min(size, field.bottom - field.top)) for field in fields]


def _value_word(field: FormField, size: float) -> Word:
    if field.kind == "choice":
        text = _TICKED if field.value else _OPEN
        return Word(text, field.left, field.top, field.right, field.bottom, size)
    text = " ".join(field.value.split())
    left = field.left + 2
    right = max(left + 1, min(field.right - 1, left + _WIDTH * size * len(text)))
    height = field.bottom - field.top
    middle = (field.top + field.bottom) / 2 if height < 2.5 * size else field.top + 0.8 * size
    return Word(text, left, middle - size / 2, right, middle + size / 2, size)


def labelled(
    fields: Sequence[FormField], values: Sequence[Word], words: Sequence[Word]
) -> tuple[list[Table], list[Word]]:
    """`label: value` of the fields as forms of one cell, and the words that are left.

    A label has letters: the number of a line is none.

    Values that stand one under the other with no label beside them are cells of a table and stay
    words.
    """
    left = list(words)
    forms: list[Table] = []
    pairs = sorted(zip(fields, values, strict=True), key=lambda p: (p[1].middle, p[1].left))
    alone = [(f, v) for f, v in pairs if not _label(f, v, left, fields)]
    for field, value in pairs:
        label = _label(field, value, left, fields)
        if not label and _stacked(field, [f for f, _ in alone]):
            left.append(value)
            continue
        label = label or _above(field, left)
        forms.append(_form(field, value, label))
        left = [word for word in left if not any(word is one for one in label)]
    return forms, left


def _form(field: FormField, value: Word, label: Sequence[Word]) -> Table:
    ends = [*label, value]
    name = " ".join(word.text for word in label).strip(" :_.…") or field.name
    if field.kind == "choice":
        text = f"{value.text} {name}"
    elif name and not name.isdigit():
        text = f"{name}{'' if name.endswith(('?', '!')) else ':'} {value.text}"
    else:
        text = value.text
    box = (
        min(w.left for w in ends), min(w.top for w in ends),
        max(w.right for w in ends), max(w.bottom for w in ends),
    )  # fmt: skip
    word = Word(text.strip(), *box, size=(label[0] if label else value).size)
    return Table(*box, 1, 1, [Cell(0, 0, word.text, lines=[[word]])], ends, kind="form")


def _label(
    field: FormField, value: Word, words: Sequence[Word], fields: Sequence[FormField]
) -> list[Word]:
    """The run of words beside a field: left of it, or right of a box to tick."""
    line = sorted((w for w in words if _level(w, value)), key=lambda w: w.left)
    others = [f for f in fields if f is not field and f.top < value.middle < f.bottom]
    if field.kind == "choice" and _named_behind(field, others, line):
        stop = min((f.left for f in others if f.left > field.left), default=float("inf"))
        return _named(_run([w for w in line if field.right - 2 <= w.left < stop], field.right, 1))
    start = max((f.right for f in others if f.right <= field.left + 2), default=float("-inf"))
    before = [w for w in line if start - 2 <= w.left and w.right <= field.left + 3]
    if before and field.left - before[-1].right > _NEAR_LEFT * before[-1].size:
        return []
    return _named(_run(before[::-1], before[-1].right if before else 0.0, -1)[::-1])


def _named(label: list[Word]) -> list[Word]:
    return label if any(map(str.isalpha, "".join(word.text for word in label))) else []


def _named_behind(field: FormField, others: Sequence[FormField], line: Sequence[Word]) -> bool:
    """Whether boxes to tick have their names behind them: the last of a line tells."""
    last = max((f.right for f in [field, *others] if f.kind == "choice"), default=field.right)
    return any(0 <= w.left - last + 2 < 4 * w.size for w in line)


def _run(words: Sequence[Word], start: float, way: int) -> list[Word]:
    """Words from `start` on, to the first wide gap."""
    run: list[Word] = []
    edge = start
    for word in words:
        gap = word.left - edge if way > 0 else edge - word.right
        if gap > 1.6 * word.size:
            break
        run.append(word)
        edge = word.right if way > 0 else word.left
    return run


def _above(field: FormField, words: Sequence[Word]) -> list[Word]:
    """The line right over a field."""
    over = [
        w for w in words
        if w.left < field.right and w.right > field.left
        and -2 <= field.top - w.bottom < 1.2 * w.size
    ]  # fmt: skip
    if not over:
        return []
    lowest = max(over, key=lambda w: w.bottom)
    return sorted((w for w in over if _level(w, lowest)), key=lambda w: w.left)


def _stacked(field: FormField, fields: Sequence[FormField]) -> bool:
    """Whether another such field stands right over or under this one, with the same edges."""
    height = field.bottom - field.top
    return any(
        other is not field
        and other.kind == field.kind
        and abs(other.left - field.left) < 4
        and abs((other.right - other.left) - (field.right - field.left)) < 8
        and abs(other.top - field.top) < 2.5 * height
        for other in fields
    )


def _level(word: Word, value: Word) -> bool:
    overlap = min(word.bottom, value.bottom) - max(word.top, value.top)
    return overlap > 0.4 * min(word.bottom - word.top, value.bottom - value.top)
