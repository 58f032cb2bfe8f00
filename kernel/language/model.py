"""A trained model: scores of a text for each language. `python -m eval.train_language` makes it."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kernel.language.features import Features

FILE = Path(__file__).with_name("model.npz")
BITS = {"latin": 15, "cyrillic": 15, "south": 18, "native": 21}
"""Table → hashes are cut to so many bits."""


class Table(NamedTuple):
    """`weights` (buckets x classes) in units of `scale`; `classes`: codes.

    The table `south` has a column for Serbian, of which Croatian is the negative, and for Bosnian;
    `native` has one, for the log odds of Serbian against Croatian.
    """

    classes: tuple[str, ...]
    weights: Any
    bias: Any
    scale: float


@cache
def tables() -> dict[str, Table]:
    """All tables, read once."""
    import numpy as np

    made = {}
    with np.load(FILE, allow_pickle=False) as file:
        for name in BITS:
            classes = tuple(str(code) for code in file[f"{name}.classes"])
            weights, bias = file[f"{name}.weights"], file[f"{name}.bias"]
            made[name] = Table(classes, weights, bias, float(file[f"{name}.scale"]))
    return made


def selected(found: Features, table: str) -> tuple[Any, ...]:
    """The features that a table looks at: neighbours need longer runs and pairs of words."""
    if table in {"south", "native"}:
        return (*found.runs[1:], found.words, found.pairs)
    return (*found.runs[:4], found.words)


def buckets(hashes: Any, table: str) -> Any:
    """Hash → row of the table: its upper bits, the well mixed ones."""
    import numpy as np

    return (hashes >> np.uint64(64 - BITS[table])).astype(np.intp)


def scores(found: Features, table: str) -> Any:
    """Log odds of the classes, before the softmax; sums of whole numbers, so never rounded."""
    import numpy as np

    chosen = tables()[table]
    hashes = np.concatenate(selected(found, table))
    if not len(hashes):
        return chosen.bias.astype(np.float64)
    sums = chosen.weights[buckets(hashes, table)].sum(axis=0, dtype=np.int32)
    return sums * (chosen.scale / len(hashes) ** 0.5) + chosen.bias
