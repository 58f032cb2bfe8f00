"""Pure `dict → dict` steps from version N to N+1 of an event type, chained on read."""

from collections.abc import Callable
from typing import Any

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


def _erased_v1(data: dict[str, Any]) -> dict[str, Any]:
    """v1 did not say what was asked for; a person could delete whole documents only."""
    return data | {"scope": "version" if data["reason"] == "blocked" else "document"}


UPCASTERS: dict[tuple[str, int], Upcaster] = {("Erased", 1): _erased_v1}
"""`("DocumentReceived", 1)` lifts v1 to v2. History is never edited; this table only grows."""


def upcast(
    type_: str,
    stored: int,
    current: int,
    data: dict[str, Any],
    table: dict[tuple[str, int], Upcaster] = UPCASTERS,
) -> dict[str, Any]:
    """Lift `data` of version `stored` to version `current`.

    Raises:
        KeyError: a step is missing in the table.
    """
    for version in range(stored, current):
        data = table[type_, version](data)
    return data
