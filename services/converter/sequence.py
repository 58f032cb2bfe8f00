"""Which numbers of a row belong together: strays and repeats fall out. Pure."""

from collections.abc import Sequence

_LOOK_BACK = 16


def chain(numbers: Sequence[tuple[int, str]], *, restart: float) -> list[int]:
    """Positions of the row in `numbers` that counts up best, in ascending order.

    Each is a value and a suffix (`12a` is `(12, "a")`). A row may leave out numbers and start
    again; each taken position is worth 1, a gap costs up to 1.2, starting again `restart`. Solved
    by dynamic programming over the last sixteen positions.
    """
    best: list[float] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        score, link = (0.0 if number[0] <= 1 else -0.3), -1
        for earlier in range(max(0, at - _LOOK_BACK), at):
            value = best[earlier] - _cost(numbers[earlier], number, restart)
            if value > score:
                score, link = value, earlier
        best.append(score + 1)
        before.append(link)
    row: list[int] = []
    at = max(range(len(best)), key=best.__getitem__, default=-1)
    while at >= 0:
        row.append(at)
        at = before[at]
    return row[::-1]


def _cost(last: tuple[int, str], number: tuple[int, str], restart: float) -> float:
    """What it costs that `number` comes after `last`."""
    step = number[0] - last[0]
    if step == 1 or (step == 0 and number[1] != last[1]):
        return 0.0
    if step > 1:
        return min(0.3 + 0.05 * step, 1.2)
    if step == 0:
        return 1.0
    return restart if number[0] <= 1 else restart + 0.7
