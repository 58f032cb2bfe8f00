"""What the log tells of a document's windows."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from contracts.envelope import Envelope
from contracts.events import Event, Indexed, Superseded, Window
from kernel.testing import received
from services.search.history import Told

START, MIDDLE = datetime(2010, 1, 1, tzinfo=UTC), datetime(2015, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
H = "a" * 64


def envelope(event: Event, hour: int) -> Envelope:
    fields: dict[str, Any] = {
        "event_id": uuid4(), "correlation_id": uuid4(), "causation_id": None, "position": hour,
        "stream_id": event.stream_id, "version": hour, "type": type(event).__name__,
        "schema_version": 1, "recorded_at": NOW + timedelta(hours=hour), "actor": "actor:1",
        "lane": "live", "project": "default", "data": event.model_dump(mode="json"),
        "traceparent": None, "occurred_at": NOW,
    }  # fmt: skip
    names = set(Envelope.model_fields)
    return Envelope(**{k: v for k, v in fields.items() if k in names})


def test_an_end_that_was_taken_back_is_known_since_it_was_said_again() -> None:
    old, new = received("old", valid_from=START), received("new", valid_from=MIDDLE)

    def said(until: datetime | None) -> Superseded:
        windows = [Window(version_id=old.version_id, valid_from=START, valid_until=until)]
        if until is not None:
            windows.append(Window(version_id=new.version_id, valid_from=until))
        return Superseded(
            **old.ids, by_version_id=new.version_id, valid_until=MIDDLE, windows=tuple(windows)
        )

    done = Indexed(**old.ids, body_sha256=H, chunks_sha256=H, chunk_count=1, embedder="e",
                   embedded=1, reused=0)  # fmt: skip
    told = Told()
    events = (old, done, new, said(MIDDLE), said(None), said(MIDDLE))
    for hour, event in enumerate(events):
        told.fold(envelope(event, hour))
    key = (old.version_id, START)
    assert told.begun[key] == (NOW + timedelta(hours=1), "received", "")
    assert told.ended[key] == (MIDDLE, NOW + timedelta(hours=5), new.version_id)
    assert told.begun[new.version_id, MIDDLE][:2] == (NOW + timedelta(hours=3), "superseded")
