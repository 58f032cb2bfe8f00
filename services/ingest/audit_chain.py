"""The hash chain of the log: checked when asked, and slowly, for ever, in the background.

A log that was tampered with gets no event about it: whoever did it could take that out again. It is
an error in the service's own log, and a gauge that an alert can be on.
"""

import asyncio
import time

import structlog
from fastapi import FastAPI

from contracts.audit import AuditSize, ChainPage, ChainRequest
from contracts.events import Project
from kernel.audit import AWAY, AWAY_SECONDS, ROUND_SECONDS, SHARE
from kernel.chain import verify
from kernel.db import queries
from kernel.log import Log
from kernel.telemetry import CHAIN_CHECKED, CHAIN_FAULTS

log = structlog.get_logger()
SLICE = 1000
"""Events that the background checks at once: some 30 ms."""


class ChainWatch:
    """Checks the log from its beginning to its head, and then again."""

    def __init__(self, event_log: Log) -> None:
        self._log = event_log
        self._found = 0

    async def run(self) -> None:
        """Until cancelled; Postgres may go away and come back."""
        page: ChainPage | None = None
        while True:
            started = time.monotonic()
            try:
                page = await self.turn(page)
            except AWAY as error:
                log.warning("audit.away", error=f"{type(error).__name__}: {error}"[:300])
                await asyncio.sleep(AWAY_SECONDS)
                continue
            spent = time.monotonic() - started
            await asyncio.sleep(max(spent * (1 / SHARE - 1), ROUND_SECONDS if page.done else 0))

    async def turn(self, before: ChainPage | None) -> ChainPage:
        """The next slice; the gauge says after each round how many faults there are."""
        if before is None or before.done:
            self._found, before = 0, None
        after, known = (before.position, before.fingerprint) if before else (0, None)
        page = await verify(self._log.pool, after=after, fingerprint=known, limit=SLICE)
        CHAIN_CHECKED.set(page.position)
        self._found += page.found
        if page.found:
            faults = [f.model_dump(exclude_none=True) for f in page.faults[:5]]
            log.error("audit.chain", found=page.found, faults=faults)
        if page.done or page.found:
            CHAIN_FAULTS.set(self._found)
        return page


def add_chain_routes(app: FastAPI, event_log: Log) -> None:
    """`POST /audit/chain`, and `GET /audit`: how much there is to check."""
    sizes = queries("kernel.sql", "audit")

    @app.post("/audit/chain", response_model=ChainPage)
    async def post_chain(request: ChainRequest) -> ChainPage:
        return await verify(
            event_log.pool,
            after=request.after,
            fingerprint=request.fingerprint,
            anchors=request.anchors,
            limit=request.limit,
        )

    @app.get("/audit", response_model=AuditSize)
    async def get_audit(project: Project | None = None) -> AuditSize:
        row = await sizes.size(event_log.pool, project=project)
        return AuditSize(head=row["head"], documents=row["documents"])
