"""Makes docs/asyncapi.json, the subjects and schemas of all events, from the code.

python -m docs.make_asyncapi
"""

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any

from contracts.cloudevent import CloudEvent
from contracts.events import EVENTS, subject, wire_type
from kernel.provision import LANES

FILE = Path(__file__).parent / "asyncapi.json"
TITLE = "citelog events"
ABOUT = """\
Every fact about a document, in order, as CloudEvents 1.0 JSON. The user `subscriber` of the bus may
subscribe to `kb.evt.>`; only citelog's own relay publishes there. The header `Nats-Msg-Id` is the
event's `id`, `kb-position` its position in the log: what was missed is at `GET /events?after=…`, or
in `kb replay`. Replays come on subjects below `kb.replay.` with the same messages. An event of an
older version keeps its version and its data (its schema is in contracts/schemas, as all are);
`kb replay --current` lifts it. Unknown fields and types are to be ignored: versions of the same
number only grow."""


def rendered() -> str:
    """The document, AsyncAPI 3.0, made by FastStream."""
    from faststream.nats import NatsBroker
    from faststream.specification.asyncapi import AsyncAPI

    broker = NatsBroker()
    for cls in EVENTS.values():
        for lane in LANES:
            broker.publisher(
                subject(lane, cls.__name__, cls.schema_version),
                title=f"{lane}.{wire_type(cls)}",
                description=cleandoc(cls.__doc__ or ""),
                schema=CloudEvent[cls],  # type: ignore[valid-type]
            )
    made = AsyncAPI(broker, title=TITLE, version="1.0.0", description=ABOUT)
    document: dict[str, Any] = json.loads(made.to_specification().to_json())
    # FastStream writes its own header there, which our messages do not have.
    for message in document["components"]["messages"].values():
        message["correlationId"] = {"location": "$message.payload#/correlationid"}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write it."""
    FILE.write_text(rendered(), "utf-8")


if __name__ == "__main__":
    main()
