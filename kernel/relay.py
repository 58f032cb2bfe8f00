"""The only publisher of events: copies the log to JetStream, position by position.

It keeps no checkpoint. The stream knows its last sequence, and `position == sequence` always, so a
second relay, a crash or a lost tail of the stream are all met by asking the stream where it is.

Before it publishes a `BytesPurged` it deletes the messages whose names the erasure took out of the
log: whoever reads that event on the bus finds them nowhere on it.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence

import nats
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.envelope import Envelope
from contracts.events import BytesPurged
from kernel.errors import KbError
from kernel.log import Log
from kernel.provision import STREAM
from kernel.telemetry import RELAY_POSITION, RELAY_RESYNCS

log = structlog.get_logger()
WINDOW = 256
ACK_TIMEOUT = 10.0
WRONG_LAST_SEQUENCE = 10071
NO_SUCH_MESSAGE = (10037, 10043, 10057)
"""Codes of JetStream where there is nothing to delete: too old, deleted before."""


class StreamAhead(KbError):
    """JetStream holds events that the log does not (an old backup?): a person decides."""


class Gap(KbError):
    """Positions in the log are not contiguous: the log is damaged."""


class Publisher:
    """Pipelined publishing over one wildcard inbox.

    `js.publish_async` of nats-py 2.16 leaves a future pending for ever on an error reply
    (nats-io/nats.py#985), so acknowledgements are matched here.
    """

    def __init__(self, connection: Client) -> None:
        self._nc = connection
        self._prefix = connection.new_inbox()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self._count = 0

    async def start(self) -> None:
        """Subscribe to the inbox."""
        await self._nc.subscribe(f"{self._prefix}.*", cb=self._on_reply)

    async def publish(self, batch: Sequence[Envelope]) -> None:
        """Publish contiguous events; returns when each is stored at its own position.

        Raises:
            ConnectionError: an acknowledgement is missing, or the stream was elsewhere.
        """
        futures = [await self._send(e) for e in batch]
        try:
            async with asyncio.timeout(ACK_TIMEOUT):
                replies = await asyncio.gather(*futures)
        finally:
            self._waiting.clear()
        for envelope, reply in zip(batch, replies, strict=True):
            _check(envelope, reply)

    async def _send(self, envelope: Envelope) -> "asyncio.Future[Msg]":
        self._count += 1
        token = str(self._count)
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        await self._nc.publish(
            envelope.subject,
            json.dumps(envelope.to_cloudevent(), ensure_ascii=False).encode(),
            reply=f"{self._prefix}.{token}",
            headers=_headers(envelope),
        )
        return future

    async def _on_reply(self, message: Msg) -> None:
        future = self._waiting.get(message.subject.rpartition(".")[2])
        if future and not future.done():
            future.set_result(message)


def _headers(envelope: Envelope) -> dict[str, str]:
    headers = {
        "Nats-Msg-Id": str(envelope.event_id),
        "Nats-Expected-Last-Sequence": str(envelope.position - 1),
        "content-type": "application/json",
        "ce-id": str(envelope.event_id),
        "ce-type": f"kb.{envelope.type}",
        "kb-position": str(envelope.position),
    }
    if envelope.traceparent:
        headers["traceparent"] = envelope.traceparent
    return headers


def _check(envelope: Envelope, reply: Msg) -> None:
    if reply.headers and reply.headers.get("Status") == "503":
        raise ConnectionError("JetStream is not there")
    ack = json.loads(reply.data)
    if error := ack.get("error"):
        raise ConnectionError(f"JetStream refused {envelope.position}: {error}")
    if ack.get("seq") != envelope.position:
        raise ConnectionError(f"event {envelope.position} was stored as {ack.get('seq')}")


def _apart(batch: Sequence[Envelope]) -> Iterator[Sequence[Envelope]]:
    """The batch in order, in parts of which each `BytesPurged` begins one."""
    starts = [n for n, e in enumerate(batch) if n and e.type == BytesPurged.__name__]
    for first, end in zip([0, *starts], [*starts, len(batch)], strict=True):
        yield batch[first:end]


class Relay:
    """Publishes what is in the log and not yet in the stream, for ever."""

    def __init__(self, event_log: Log, nats_url: str) -> None:
        self._log = event_log
        self._url = nats_url

    async def run(self) -> None:
        """Follow the log until cancelled.

        Raises:
            StreamAhead, Gap: nothing may be published; a person has to look.
        """
        connection = await nats.connect(
            self._url, name="kb-relay", max_reconnect_attempts=-1, reconnect_time_wait=0.25
        )
        try:
            publisher = Publisher(connection)
            await publisher.start()
            while True:
                try:
                    await self._follow(connection, publisher)
                except (ConnectionError, TimeoutError, nats.errors.Error) as error:
                    RELAY_RESYNCS.labels(type(error).__name__).inc()
                    log.info("relay.resync", reason=str(error)[:200])
                    await asyncio.sleep(0.25)
        finally:
            await connection.close()

    async def _follow(self, connection: Client, publisher: Publisher) -> None:
        last = await self._last_sequence(connection)
        head = await self._log.head()
        if last > head:
            raise StreamAhead(f"the stream is at {last}, the log at {head}")
        async for batch in self._log.follow(last, limit=WINDOW):
            if not batch:
                continue
            positions = [e.position for e in batch]
            if positions != list(range(last + 1, last + 1 + len(batch))):
                raise Gap(f"after {last} comes {positions[0]}")
            for part in _apart(batch):
                if part[0].type == BytesPurged.__name__:
                    await self._delete(connection, part[0])
                await publisher.publish(part)
            last = positions[-1]
            RELAY_POSITION.set(last)

    async def _delete(self, connection: Client, purged: Envelope) -> None:
        """Delete the messages of an erased version that the log keeps without their words; the
        server overwrites them. A stream that is filled again gets what the log has now.

        Raises:
            ConnectionError: the server did not do it; it is tried again before anything else.
        """
        ids = purged.data["document_id"], purged.data["version_id"]
        for position in await self._log.redacted([f"document-{ids[0]}", f"version-{ids[1]}"]):
            if position >= purged.position:
                continue
            asked = json.dumps({"seq": position, "no_erase": False}).encode()
            reply = await connection.request(f"$JS.API.STREAM.MSG.DELETE.{STREAM}", asked, 10)
            error = json.loads(reply.data).get("error")
            if error and error.get("err_code") not in NO_SUCH_MESSAGE:
                raise ConnectionError(f"JetStream did not delete {position}: {error}")

    async def _last_sequence(self, connection: Client) -> int:
        info = await connection.jetstream(timeout=5).stream_info(STREAM)
        return int(info.state.last_seq)
