"""`kb ingest`: streamed uploads, then each file's way to the index."""

import asyncio
import io
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from cli.client import checked, unreachable
from cli.output import CliError
from contracts.http import Accepted, JobView

_FIRST_SEEN_SECONDS = 60.0
"""The job list is a projection: a job that was just accepted may not be in it yet."""
_LOST_SECONDS = 120.0
"""The front door may restart under us; past this it is gone."""
_POLL_SECONDS = 0.25
_AT_ONCE = 8


@dataclass
class Outcome:
    """What became of one file. `status`: as in the job, or `duplicate`, `accepted`, `error`."""

    file: str
    status: str = "error"
    ok: bool = False
    chunk_count: int | None = None
    error: dict[str, Any] | None = None
    job_id: str | None = None
    document_id: str | None = None
    version_id: str | None = None
    source_id: str | None = None
    duplicate_of: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


class View(Protocol):
    """Who watches: bars on a terminal, lines in a pipe, nobody for `--json`."""

    def begin(self, file: str, size: int) -> None: ...
    def sent(self, file: str, count: int) -> None: ...
    def stage(self, file: str, status: str) -> None: ...
    def done(self, outcome: Outcome) -> None: ...


class _CountedFile(io.FileIO):
    """A file that tells how much of it was read."""

    def __init__(self, path: Path, told: Callable[[int], None]) -> None:
        super().__init__(path, "rb")
        self._told = told

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self._told(len(data))
        return data


class Ingest:
    """One call of `kb ingest`."""

    def __init__(self, http: httpx.AsyncClient, fields: Mapping[str, str], view: View) -> None:
        self._http, self._fields, self._view = http, fields, view
        self._pending: dict[str, Outcome] = {}
        self._accepted_at: dict[str, float] = {}
        self._sending = True

    async def run(self, files: list[Path], *, wait: bool) -> list[Outcome]:
        """Upload one after the other; meanwhile and afterwards follow their jobs."""
        watch = asyncio.create_task(self._watch()) if wait else None
        try:
            outcomes = [await self._upload(file, wait=wait) for file in files]
            self._sending = False
            if watch:
                await watch
        finally:
            if watch:
                watch.cancel()
        return outcomes

    async def _upload(self, path: Path, *, wait: bool) -> Outcome:
        outcome = Outcome(str(path))
        try:
            accepted = await self._send(path)
        except CliError as error:
            return self._fail(outcome, error)
        outcome.job_id, outcome.document_id = accepted.job_id, accepted.document_id
        outcome.version_id, outcome.source_id = accepted.version_id, accepted.source_id
        outcome.duplicate_of = accepted.duplicate_of
        if accepted.duplicate_of or not wait:
            outcome.ok = True
            outcome.status = "duplicate" if accepted.duplicate_of else "accepted"
            self._view.done(outcome)
            return outcome
        self._accepted_at[accepted.job_id] = time.monotonic()
        self._pending[accepted.job_id] = outcome
        self._view.stage(outcome.file, "received")
        return outcome

    async def _send(self, path: Path) -> Accepted:
        size = _regular_size(path)
        name = str(path)
        self._view.begin(name, size)
        try:
            with _CountedFile(path, lambda n: self._view.sent(name, n)) as file:
                reply = await self._http.post(
                    "/documents", data=dict(self._fields), files={"file": (path.name, file)}
                )
        except httpx.HTTPError as error:
            raise unreachable(error) from error
        except OSError as error:
            raise CliError("cannot read", error.strerror or str(error)) from error
        return Accepted.model_validate(checked(reply).json())

    async def _watch(self) -> None:
        lost_since: float | None = None
        while self._sending or self._pending:
            try:
                await self._poll_all()
                lost_since = None
            except httpx.HTTPError as error:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > _LOST_SECONDS:
                    self._fail_all(unreachable(error))
            await asyncio.sleep(_POLL_SECONDS)

    async def _poll_all(self) -> None:
        jobs = list(self._pending)
        for start in range(0, len(jobs), _AT_ONCE):
            polls = [self._poll(job) for job in jobs[start : start + _AT_ONCE]]
            # All of them end before an error of one is raised: the next round polls them again.
            for result in await asyncio.gather(*polls, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _poll(self, job_id: str) -> None:
        reply = await self._http.get(f"/jobs/{job_id}")
        if reply.status_code >= 500:
            raise httpx.HTTPError(f"HTTP {reply.status_code}")
        waited = time.monotonic() - self._accepted_at[job_id]
        if reply.status_code == 404 and waited < _FIRST_SEEN_SECONDS:
            return
        try:
            job = JobView.model_validate(checked(reply).json())
        except CliError as error:
            self._fail(self._pending.pop(job_id), error)
            return
        outcome = self._pending[job_id]
        outcome.status, outcome.chunk_count, outcome.error = job.status, job.chunk_count, job.error
        if job.done:
            outcome.ok = job.status == "indexed"
            self._view.done(self._pending.pop(job_id))
        else:
            self._view.stage(outcome.file, job.status)

    def _fail_all(self, error: CliError) -> None:
        for job_id in list(self._pending):
            self._fail(self._pending.pop(job_id), error)

    def _fail(self, outcome: Outcome, error: CliError) -> Outcome:
        outcome.status, outcome.ok = "error", False
        outcome.error = {"type": error.type, "title": error.title, "detail": error.detail}
        self._view.done(outcome)
        return outcome


def _regular_size(path: Path) -> int:
    """Size in bytes.

    Raises:
        CliError: missing, a folder, or no plain file.
    """
    try:
        info = path.stat()
    except OSError as error:
        raise CliError("cannot read", error.strerror or str(error)) from error
    if stat.S_ISDIR(info.st_mode):
        raise CliError("is a folder", "name the files, for example with a pattern: folder/*")
    if not stat.S_ISREG(info.st_mode):
        raise CliError("is not a plain file")
    return info.st_size


def explain(outcome: Outcome) -> str:
    """One line for a person."""
    if outcome.status == "review":
        return f"in quarantine; kb review show {outcome.version_id}"
    if outcome.error:
        e = outcome.error
        title, code = e.get("title") or outcome.status, e.get("code") or e.get("type") or ""
        text = ": ".join(p for p in (title, e.get("detail") or e.get("reason") or "") if p)
        return f"{text} ({code})" if code else text
    if outcome.status == "indexed":
        count = outcome.chunk_count or 0
        return f"indexed, {count} chunk{'s' if count != 1 else ''}"
    return outcome.status
