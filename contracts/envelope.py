"""The envelope of a stored event, and its CloudEvents 1.0 JSON form on the bus."""

from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict

from contracts.events import EVENTS, Event, Fact, Lane, subject, utc
from contracts.history.upcasters import upcast


class UnknownEvent(ValueError):
    """A type or schema version that this code does not know: a matter of deployment order."""


class Envelope(BaseModel):
    """One row of the log. `position` is global, gap-free and equals the JetStream sequence."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    position: int
    stream_id: str
    version: int
    event_id: UUID
    type: str
    schema_version: int
    lane: Lane
    project: str
    causation_id: UUID | None
    correlation_id: UUID
    actor: str
    traceparent: str | None
    occurred_at: AwareDatetime
    recorded_at: AwareDatetime
    data: dict[str, Any]

    @property
    def subject(self) -> str:
        """Where the relay publishes it."""
        return subject(self.lane, self.type, self.schema_version)

    def event(self) -> Event:
        """`fact`, where it is known to be about a version of a document."""
        fact = self.fact()
        if not isinstance(fact, Event):
            raise TypeError(f"{self.type} is about no document")
        return fact

    def fact(self) -> Fact:
        """The event in its current shape, old versions upcast.

        Raises:
            UnknownEvent: newer than this code.
            pydantic.ValidationError: the stored data fit no known version.
        """
        cls = EVENTS.get(self.type)
        if cls is None or self.schema_version > cls.schema_version:
            raise UnknownEvent(f"{self.type}.v{self.schema_version}")
        data = upcast(self.type, self.schema_version, cls.schema_version, self.data)
        return cls.model_validate(data)

    def current(self) -> "Envelope":
        """The same event with its data in the current shape; one newer than this code as it is."""
        cls = EVENTS.get(self.type)
        if cls is None or self.schema_version >= cls.schema_version:
            return self
        data = upcast(self.type, self.schema_version, cls.schema_version, self.data)
        return self.model_copy(update={"schema_version": cls.schema_version, "data": data})

    def to_cloudevent(self) -> dict[str, Any]:
        """CloudEvents 1.0 JSON; extension attributes are lower-case alphanumerics."""
        return {
            "specversion": "1.0",
            "id": str(self.event_id),
            "source": f"/kb/{self.actor}",
            "type": f"kb.{self.type}",
            "subject": self.stream_id,
            "time": utc(self.occurred_at),
            "datacontenttype": "application/json",
            "dataschema": f"urn:kb:{self.type}:{self.schema_version}",
            "streamversion": self.version,
            "position": self.position,
            "recordedtime": utc(self.recorded_at),
            "schemaversion": self.schema_version,
            "lane": self.lane,
            "project": self.project,
            "actor": self.actor,
            "correlationid": str(self.correlation_id),
            "causationid": str(self.causation_id) if self.causation_id else None,
            "traceparent": self.traceparent,
            "data": self.data,
        }

    @classmethod
    def from_cloudevent(cls, ce: dict[str, Any]) -> "Envelope":
        """The inverse of `to_cloudevent`.

        Raises:
            KeyError, pydantic.ValidationError: not an event of ours.
        """
        return cls(
            position=ce["position"],
            stream_id=ce["subject"],
            version=ce["streamversion"],
            event_id=ce["id"],
            type=ce["type"].removeprefix("kb."),
            schema_version=ce["schemaversion"],
            lane=ce["lane"],
            project=ce["project"],
            causation_id=ce["causationid"],
            correlation_id=ce["correlationid"],
            actor=ce["actor"],
            traceparent=ce["traceparent"],
            occurred_at=ce["time"],
            recorded_at=ce["recordedtime"],
            data=ce["data"],
        )
