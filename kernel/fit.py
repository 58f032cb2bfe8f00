"""What a version must be like to be found: its type, labels and dates, as both legs ask for it."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Fit:
    """Conditions on a version, joined by AND; an empty one says nothing.

    `media_types`: one of these. `tags`: all of these labels; `classes`: one of these. `received_…`:
    when its bytes came in. `dated_…`: when the validity begins that lets a passage pass. Both ends
    belong to a span.
    """

    media_types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    received_from: datetime | None = None
    received_until: datetime | None = None
    dated_from: datetime | None = None
    dated_until: datetime | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) for f in fields(self))

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the queries; an empty condition is None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            name: (sorted(value) or None) if isinstance(value, frozenset) else value
            for name, value in values.items()
        }


ANY = Fit()
"""Every version."""
