"""Words written in a figure, as one piece: scattered, they would break into the text around it.

Coordinates are points with the origin at the top left.
"""

from collections.abc import Sequence
from statistics import median

from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.pdf_table import Cell, Table

FigureBox = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_MOST_WORDS = 6
_RUNNING_SHARE = 0.4
_LARGE = 1.25


def figure_texts(
    words: Sequence[Word], figures: Sequence[FigureBox]
) -> tuple[list[Table], list[Word]]:
    """A `figure` for each box with labels in it, and the words that are left.

    Lines of running text are no labels, nor is large type; a box that holds mostly these lies
    behind the text of the page.
    """
    left = list(words)
    found: list[Table] = []
    size = median(word.size for word in words) if words else 0.0
    for box in figures:
        inside = [w for w in left if _within(w, box) and w.size <= _LARGE * size]
        runs = _runs(inside)
        labels = [run for run in runs if len(run) <= _MOST_WORDS]
        running = sum(len(run) for run in runs if len(run) > _MOST_WORDS)
        if not labels or running > _RUNNING_SHARE * len(inside):
            continue
        taken = [word for run in labels for word in run]
        found.append(_figure(labels, taken))
        known = set(map(id, taken))
        left = [word for word in left if id(word) not in known]
    return found, left


def _within(word: Word, box: FigureBox) -> bool:
    left, top, right, bottom = box
    return left <= (word.left + word.right) / 2 <= right and top <= word.middle <= bottom


def _runs(words: Sequence[Word]) -> list[list[Word]]:
    """Words side by side with no wide gap between them."""
    runs: list[list[Word]] = []
    for word in sorted(words, key=lambda w: (round(w.middle / max(w.size, 1) * 2), w.left)):
        last = runs[-1][-1] if runs else None
        level = last is not None and abs(last.middle - word.middle) < 0.5 * word.size
        if last is not None and level and -2 < word.left - last.right < 1.2 * word.size:
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _figure(runs: Sequence[list[Word]], words: list[Word]) -> Table:
    box = (
        min(w.left for w in words), min(w.top for w in words),
        max(w.right for w in words), max(w.bottom for w in words),
    )  # fmt: skip
    text = "; ".join(" ".join(word.text for word in run) for run in runs)
    whole = Word(text, *box, size=median(word.size for word in words))
    return Table(*box, 1, 1, [Cell(0, 0, text, lines=[[whole]])], words, kind="figure")
