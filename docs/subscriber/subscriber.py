"""An example for other products: hears every event of citelog once, in order, and misses none.

    pip install nats-py httpx
    KB_BUS=nats://subscriber:PASSWORD@127.0.0.1:4222 KB_URL=http://127.0.0.1:8080 KB_API_KEY=… \
      python subscriber.py [POSITION]

The bus says at once that something happened; what it did not deliver (it keeps nothing for those
who are away) is read from `GET /events`. The position of the last event is all that needs to be
kept.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import nats

SUBJECT = "kb.evt.>"
"""Every event. A narrower one makes gaps between positions that are no losses."""
JSON_LINES = {"accept": "application/x-ndjson"}


async def missed(
    http: httpx.AsyncClient, after: int, until: int | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Events after a position that are in the log already."""
    query = {"after": after} | ({} if until is None else {"until": until})
    async with http.stream("GET", "/events", params=query, headers=JSON_LINES) as reply:
        reply.raise_for_status()
        async for line in reply.aiter_lines():
            yield json.loads(line)


async def events(bus: str, http: httpx.AsyncClient, after: int) -> AsyncIterator[dict[str, Any]]:
    """Every event after a position, for ever. An event is given once; its `id` tells, should one
    come again after a restart."""
    heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(json.loads(message.data))

    client = await nats.connect(bus, max_reconnect_attempts=-1)
    try:
        # First listen, then read what is there: nothing happens in between that neither has.
        await client.subscribe(SUBJECT, cb=hear)
        await client.flush()
        async for event in missed(http, after):
            yield event
            after = event["position"]
        while True:
            event = await heard.get()
            if event["position"] > after + 1:
                async for lost in missed(http, after, event["position"] - 1):
                    yield lost
                    after = lost["position"]
            if event["position"] > after:
                yield event
                after = event["position"]
    finally:
        await client.close()


async def main() -> None:
    """Print one line an event."""
    after = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    key = {"authorization": f"Bearer {os.environ['KB_API_KEY']}"}
    async with httpx.AsyncClient(base_url=os.environ["KB_URL"], headers=key, timeout=60) as http:
        async for event in events(os.environ["KB_BUS"], http, after):
            sys.stdout.write(f"{event['position']} {event['type']} {event['subject']}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
