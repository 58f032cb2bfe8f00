"""Bodies of the routes under `/events`."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class EventCount(BaseModel):
    """How many events of one type a project has in a range."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    project: str
    type: str
    events: int


class EventSummary(BaseModel):
    """`GET /events/summary`: what `GET /events` with the same filters answers.

    `after` (exclusive) and `until` (inclusive) are the positions that the asked range comes to;
    `first` and `last` the positions of the first and the last event in it, None without one; the
    times are when these two were recorded. `head`: the position of the newest event of the log.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    events: int
    after: int
    until: int
    first: int | None
    last: int | None
    first_recorded: datetime | None
    last_recorded: datetime | None
    head: int
    counts: list[EventCount]
