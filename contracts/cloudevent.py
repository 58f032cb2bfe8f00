"""The form of an event on the bus, in `GET /events` and in a replay: CloudEvents 1.0 JSON."""

from typing import Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict

from contracts.events import Fact, Lane

Data = TypeVar("Data", bound=Fact)


class CloudEvent(BaseModel, Generic[Data]):
    """What surrounds the data of an event; `Envelope.to_cloudevent` makes it.

    `position` is global and without gaps: a reader that met 41 and then 43 has missed one. `id` is
    the same whenever the event comes again, on the bus or in a replay. `time` is when it happened,
    `recordedtime` when it was recorded; the order of positions is that of recorded times. `subject`
    is the stream that it belongs to, `streamversion` its place there. `correlationid` is the job
    that it is part of, `causationid` the event that led to it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    specversion: Literal["1.0"]
    id: UUID
    source: str
    type: str
    subject: str
    time: AwareDatetime
    datacontenttype: Literal["application/json"]
    dataschema: str
    streamversion: int
    position: int
    recordedtime: AwareDatetime
    schemaversion: int
    lane: Lane
    project: str
    actor: str
    correlationid: UUID
    causationid: UUID | None
    traceparent: str | None
    data: Data
