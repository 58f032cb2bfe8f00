"""Ends a process whose consumers are gone or stand still: nothing else would tell.

FastStream does not notice a durable that was deleted, and nats-py can lose a pull request
(nats-io/nats.py#986). Liveness is progress of the consumers, not an open TCP connection.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import nats
import nats.errors
import structlog
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from kernel.errors import KbError
from kernel.provision import STREAM

log = structlog.get_logger()
EVERY = 15.0
PATIENCE = 4
"""Looks in a row at which work waited and nothing was delivered."""


class Stalled(KbError):
    """A consumer of this process does not work any more; a restart is the cure."""


@dataclass
class Watchdog:
    """Looks after the durables `names` of this process."""

    nats_url: str
    names: Sequence[str]
    api: str = "$JS.API"
    every: float = EVERY
    _seen: dict[str, int] = field(default_factory=dict)
    _still: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Look until cancelled.

        Raises:
            Stalled: a durable is gone, or stands still although work waits for it.
        """
        connection = await nats.connect(
            self.nats_url, name="kb-watchdog", max_reconnect_attempts=-1, reconnect_time_wait=1
        )
        try:
            while True:
                await asyncio.sleep(self.every)
                for name in self.names:
                    await self._look(connection.jetstream(prefix=self.api), name)
        finally:
            await connection.close()

    async def _look(self, js: JetStreamContext, name: str) -> None:
        try:
            info = await js.consumer_info(STREAM, name)
        except NotFoundError as error:
            raise Stalled(f"the consumer {name} is gone: provision it") from error
        except (nats.errors.Error, TimeoutError) as error:
            log.info("watchdog.away", error=str(error)[:200])  # the bus itself is away: no verdict
            return
        delivered = info.delivered.consumer_seq if info.delivered else 0
        waits = bool(info.num_pending) and not info.num_ack_pending
        moved = self._seen.get(name) != delivered
        self._still[name] = self._still.get(name, 0) + 1 if waits and not moved else 0
        self._seen[name] = delivered
        if self._still[name] >= PATIENCE:
            raise Stalled(f"{info.num_pending} events wait for {name}, and none is delivered")
