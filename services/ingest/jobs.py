"""Cancel, retry and delete: legal in every state, and the same when two people press at once."""

from uuid import UUID, uuid4

from contracts.http import Deleted, JobChanged
from kernel.blobs import Blobs
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending
from services.ingest.accept import TRIES, receipt_id
from services.ingest.erase import Eraser
from services.ingest.life import STOPPABLE, Attempt, Life, load_life, stop


class Jobs:
    """What a person may do to a job or a document.

    Every step is decided on the version of a stream, so that of two who press at once the second
    looks again, and is told that it was so already.
    """

    def __init__(self, log: Log, blobs: Blobs, eraser: Eraser) -> None:
        self._log, self._blobs, self._eraser = log, blobs, eraser

    async def cancel(self, job_id: str, actor: str) -> JobChanged:
        """End a job: nothing more of it is recorded. A job that is over stays as it is.

        Raises:
            Refusal: `unknown-job`, `conflict`.
        """
        job = _uuid(job_id)
        for _ in range(TRIES):
            life = await self._life_of_job(job)
            attempt = next(a for a in life.attempts if a.job == job)
            if attempt is not life.last or attempt.status not in STOPPABLE:
                return await self._told(attempt, changed=False)
            try:
                position = await stop(self._log, life, "a person cancelled the job", actor)
            except WrongVersion:
                continue
            attempt.status = "failed"
            return await self._told(attempt, changed=True, position=position)
        raise _conflict()

    async def retry(self, job_id: str, actor: str) -> JobChanged:
        """Try the version of a job again, as a new job; one that still runs is cancelled first.

        If the version was tried again after this job, that attempt is told and nothing changes.

        Raises:
            Refusal: `unknown-job`, `bytes-gone` (blocked or deleted), `conflict`.
        """
        job = _uuid(job_id)
        for _ in range(TRIES):
            life = await self._life_of_job(job)
            if life.last.job != job:
                return await self._told(life.last, changed=False)
            await self._check_bytes(life)
            try:
                if life.last.status in STOPPABLE:
                    await stop(self._log, life, "the document is tried again", actor)
                return await self._begin(life, actor)
            except WrongVersion:
                continue
        raise _conflict()

    async def delete(self, id_: str, actor: str) -> Deleted:
        """Erase all versions of a document, and what was attached to them; jobs are cancelled.

        Args:
            id_: a document, one of its versions, or bytes that are in one document only.
            actor: who asks.

        Raises:
            Refusal: `unknown-document`, `ambiguous-id`, `conflict`.
        """
        return await self._eraser.delete(await self.document(id_), actor)

    async def _begin(self, life: Life, actor: str) -> JobChanged:
        before = life.last
        attempt = before.receipt.attempt + 1
        event = before.receipt.model_copy(update={"attempt": attempt})
        pending = Pending(
            event, receipt_id(life.version_id, attempt), uuid4(), actor, lane=before.begun.lane
        )
        appended = await self._log.append([pending], expected=life.document_at)
        if appended.status == "duplicate":  # somebody else began this very attempt
            raise WrongVersion(event.stream_id, life.document_at)
        begun = Attempt(pending.correlation_id, event, before.begun)
        return await self._told(begun, changed=True, position=appended.position)

    async def _check_bytes(self, life: Life) -> None:
        gone = life.erased or life.last.status == "blocked"
        if gone or not await self._blobs.exists(life.last.receipt.source_id):
            reason = "its bytes were deleted; send the document again"
            raise Refusal("bytes-gone", reason, status=409)

    async def _life_of_job(self, job: UUID) -> Life:
        begun = await self._log.job(job)
        if begun is None:
            raise Refusal("unknown-job", "there is no such job", status=404)
        return await load_life(self._log, begun.data["document_id"], begun.data["version_id"])

    async def document(self, id_: str) -> str:
        """The document that an id names: its own, one of a version, or bytes of one document only.

        Raises:
            Refusal: `unknown-document`, `ambiguous-id`.
        """
        if await self._log.stream(f"document-{id_}"):
            return id_
        version = await self._log.event(receipt_id(id_, 1))
        if version is not None:
            return str(version.data["document_id"])
        found = {r.document_id for r in await self._log.receipts(id_)}
        if len(found) > 1:
            reason = f"{len(found)} documents have these bytes: name one by its id"
            raise Refusal("ambiguous-id", reason, status=409)
        if not found:
            raise Refusal("unknown-document", "there is no such document or version", status=404)
        return found.pop()

    async def _told(self, attempt: Attempt, *, changed: bool, position: int = 0) -> JobChanged:
        return JobChanged(
            job_id=str(attempt.job),
            project=attempt.receipt.project,
            document_id=attempt.receipt.document_id,
            version_id=attempt.receipt.version_id,
            attempt=attempt.receipt.attempt,
            status=attempt.status,
            changed=changed,
            position=position or await self._log.head(),
        )


def _uuid(job_id: str) -> UUID:
    try:
        return UUID(job_id)
    except ValueError as error:
        raise Refusal("unknown-job", "there is no such job", status=404) from error


def _conflict() -> Refusal:
    return Refusal("conflict", "others change this document at the same time", status=409)
