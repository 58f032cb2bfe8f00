"""What people ask of re-scans: begin, look at, cancel."""

from typing import Any

from contracts.events import Kept, RescanAdvanced
from contracts.rescan import RescanHit, RescanReply, RescanReport
from kernel.db import queries
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log
from services.scanner.history import fold
from services.scanner.rescan import Rescanner, begin, end, load, pending
from services.scanner.stored import Stored

LISTED = 1000
"""Hits, and versions that were kept, in a report."""
TRIES = 5


class Requests:
    """Answers about the re-scans of one project, or of all."""

    def __init__(self, event_log: Log, stored: Stored, worker: Rescanner) -> None:
        self._log, self._stored, self._worker = event_log, stored, worker
        self._sql = queries("services.scanner", "rescan")

    async def start(self, project: str | None, actor: str) -> RescanReply:
        """Begin a re-scan of a project, or of each; one that runs with these rules goes on.

        Raises:
            Refusal: `unknown-project`.
        """
        known = [r["project"] async for r in self._sql.projects(self._log.pool)]
        if project is not None and project not in known:
            raise Refusal("unknown-project", f"there is no project {project}", status=404)
        projects = known if project is None else [project]
        rules = {p: await (await self._stored.of(self._log, p)).ruleset() for p in projects}
        started = tuple([p for p in projects if await self._begun(p, rules[p], actor)])
        if started:
            self._worker.wake()
        return await self._reply(projects, started)

    async def status(self, project: str | None) -> RescanReply:
        """The newest re-scan of a project, or of each that had one."""
        return await self._reply(await self._asked(project))

    async def cancel(self, project: str | None, actor: str) -> RescanReply:
        """End what runs, as far as it came; what it took out of the index stays in review."""
        projects = await self._asked(project)
        for name in projects:
            await self._end(name, actor)
        return await self._reply(projects)

    async def report(self, rescan_id: str) -> RescanReport:
        """What a re-scan found so far.

        Raises:
            Refusal: `unknown-rescan`.
        """
        project = await self._sql.project_of(self._log.pool, rescan_id=rescan_id)
        if project is None:
            raise Refusal("unknown-rescan", "there is no such re-scan", status=404)
        envelopes = await self._log.stream(f"rescans-{project}")
        rescan = next(r for r in fold(envelopes).all if r.id == rescan_id)
        kept: list[Kept] = []
        for envelope in envelopes:
            event = envelope.fact()
            if isinstance(event, RescanAdvanced) and event.rescan_id == rescan_id:
                kept += event.kept
        rows = self._sql.hits(self._log.pool, rescan_id=rescan_id, limit=LISTED)
        return RescanReport(
            rescan=rescan.view(await self._rules(project)),
            hits=[_hit(r) async for r in rows],
            kept=kept[:LISTED],
        )

    async def _asked(self, project: str | None) -> list[str]:
        if project is not None:
            return [project]
        return [r["project"] async for r in self._sql.rescanned(self._log.pool)]

    async def _reply(self, projects: list[str], started: tuple[str, ...] = ()) -> RescanReply:
        newest = {p: (await load(self._log, p)).newest for p in projects}
        views = [r.view(await self._rules(p)) for p, r in newest.items() if r is not None]
        version = self._stored.judge.version
        position = await self._log.head()
        return RescanReply(ruleset=version, rescans=views, started=started, position=position)

    async def _rules(self, project: str) -> str:
        return (await self._stored.of(self._log, project)).judge.version

    async def _begun(self, project: str, ruleset: str, actor: str) -> bool:
        """Was a re-scan begun now? Not if one runs with these rules already."""
        for _ in range(TRIES):
            history = await load(self._log, project)
            running = history.running
            if running is not None and running.begun.ruleset == ruleset:
                return False
            receipts = await self._sql.count_receipts(self._log.pool, project=project)
            facts = [pending(begin(project, ruleset, receipts, actor), actor)]
            if running is not None:
                facts.insert(0, pending(end(running, "replaced", actor), actor))
            try:
                await self._log.append(facts, expected=history.version)
            except WrongVersion:
                continue  # somebody else began one, or it came on
            return True
        raise _conflict()

    async def _end(self, project: str, actor: str) -> None:
        for _ in range(TRIES):
            running = (await load(self._log, project)).running
            if running is None:
                return
            over = pending(end(running, "cancelled", actor), actor)
            try:
                await self._log.append([over], expected=running.version)
            except WrongVersion:
                continue  # it came on meanwhile
            return
        raise _conflict()


def _conflict() -> Refusal:
    return Refusal("conflict", "the re-scan moves too fast: try it again", status=409)


def _hit(row: Any) -> RescanHit:
    data = row["data"]
    return RescanHit(
        version_id=data["version_id"],
        document_id=data["document_id"],
        name=row["name"],
        source_key=row["source_key"],
        subject=data["subject"],
        verdict="block" if data["lowered"] else "quarantine",
        score=data["score"],
        rules=sorted({f["rule"] for f in data["findings"]}),
        decision=row["decision"] or "open",
        position=row["position"],
    )
