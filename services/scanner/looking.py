"""One version in a re-scan: its stored texts are judged, and a hit is recorded."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from pydantic import ValidationError

from contracts.envelope import Envelope
from contracts.events import Kept
from kernel.clearance import Text, Texts
from kernel.db import queries
from kernel.errors import Refusal
from kernel.log import REACTIONS, Log, Pending
from services.scanner.handlers import verdict
from services.scanner.history import Hit, Outcome, Rescan, is_known, to_decide
from services.scanner.stored import Stored

ACTOR = "svc:scanner"


class Moved(Exception):
    """Something happened to the version while it was looked at."""


class Closed(Exception):
    """The re-scan is over, or another worker has it."""


class Looking:
    """Judges versions for one re-scan. `covered`: log position up to which these rules know all."""

    def __init__(self, event_log: Log, stored: Stored, rescan: Rescan, covered: int) -> None:
        self._log, self._stored = event_log, stored
        self._rescan, self._covered = rescan, covered
        self._sql = queries("services.scanner", "rescan")

    async def outcome(self, life: Sequence[Envelope]) -> Outcome:
        """What becomes of a version with these events.

        Raises:
            Moved, WrongVersion: look again. Closed: there is nothing to look for.
            Retry: a large text is under work.
        """
        found = [e for e in life if e.data.get("rescan") == self._rescan.id]
        if found:  # before this worker, or another one, died
            return "lowered" if any(e.data["lowered"] for e in found) else "quarantined"
        texts = Texts(life)
        stakes = texts.at_stake()
        if not stakes:
            return "absent"
        try:
            outcomes = [await self._stake(texts, body, parse) for body, parse in stakes]
        except Refusal as refusal:
            return await self._unread(life, refusal.code)
        except (UnicodeDecodeError, ValidationError):
            return await self._unread(life, "text-unreadable")
        for outcome in outcomes:
            if isinstance(outcome, Kept) or outcome in ("quarantined", "lowered"):
                return outcome
        return "known" if all(o == "known" for o in outcomes) else "clean"

    async def _stake(self, texts: Texts, body: Text | None, parse: Text | None) -> Outcome:
        words = [texts.words[text] for text in (body, parse) if text]
        if all(is_known(w, self._stored.judge.version, self._covered) for w in words):
            return "known"
        hits = await self._hits(body, parse)
        if not hits:
            return "clean"
        if any(w.trusted for w in words):
            return self._kept(texts, "trusted", hits[0].rules)
        project = self._rescan.begun.project
        for hit in hits:
            key = {"text_sha256": hit.text.sha256, "meta_sha256": hit.text.meta_sha256}
            if not await self._sql.released(self._log.pool, project=project, **key):
                return await self._record(texts, hit)
        return self._kept(texts, "released", hits[0].rules)

    async def _unread(self, life: Sequence[Envelope], code: Any) -> Outcome:
        """A text cannot be judged; unless the version was erased, or moved on, meanwhile."""
        ids = {k: life[-1].data[k] for k in ("version_id", "document_id")}
        if await self._sql.moved(self._log.pool, **ids, position=life[-1].position):
            raise Moved
        return Kept(**ids, code=code)

    async def _hits(self, body: Text | None, parse: Text | None) -> Sequence[Hit]:
        """Raises Refusal (a text is missing or was changed)."""
        if body and parse and await self._is_clean(body, parse):
            return []
        in_parse, hidden = await self._parse(parse, alone=body is None)
        in_body = None
        if body is not None:
            result = await self._stored.body(body.sha256, body.meta_sha256 or "")
            in_body = Hit("converted", body, result) if result.verdict != "clean" else None
        return to_decide(in_parse, in_body, hidden=hidden)

    async def _is_clean(self, body: Text, parse: Text) -> bool:
        """Is nothing in the body and nothing hidden in its parse? Most texts are read once only.

        What the converter left out of the body is in no index, so it is not read again.
        """
        try:
            key = (parse.sha256, body.sha256, body.meta_sha256 or "")
            return (await self._stored.together(*key)).verdict == "clean"
        except Refusal:
            return False  # which of them it is, the single readings tell

    async def _parse(self, parse: Text | None, *, alone: bool) -> tuple[Hit | None, bool]:
        """A hit in a parse that is still stored, and whether what is hidden in it is enough."""
        if parse is None:
            return None, False
        try:
            result = await self._stored.parse(parse.sha256)
            if result.verdict == "clean":
                return None, False
            hidden = await self._stored.hidden(parse.sha256)
        except Refusal as refusal:
            if refusal.code == "text-missing" and not alone:
                return None, False
            raise
        return Hit("parsed", parse, result), hidden.verdict != "clean"

    async def _record(self, texts: Texts, hit: Hit) -> Outcome:
        """Append the verdict, if nothing happened to the version since it was read."""
        job, receipt = texts.job, texts.receipt
        if job is None or receipt is None:
            raise Moved
        if not await self._sql.is_open(self._log.pool, rescan_id=self._rescan.id):
            raise Closed
        lowered = hit.result.verdict == "block"
        event = verdict(
            receipt.event(),
            hit.result,
            self._stored,
            False,
            subject=hit.subject,
            text_sha256=hit.text.sha256,
            meta_sha256=hit.text.meta_sha256,
            verdict="quarantine",
            lowered=lowered,
            rescan=self._rescan.id,
        )
        pending = Pending(
            event, self._event_id(event.version_id, hit), job, ACTOR, self._rescan.event_id
        )
        done = await self._log.append([pending], expected=texts.at, unless_over=job)
        if done.status == "over":
            raise Moved
        return "lowered" if lowered else "quarantined"

    def _event_id(self, version_id: str, hit: Hit) -> UUID:
        key = (self._rescan.id, version_id, hit.subject, hit.text.sha256, hit.text.meta_sha256)
        return uuid5(REACTIONS, "|".join(str(k) for k in key))

    def _kept(self, texts: Texts, code: Any, rules: tuple[str, ...] = ()) -> Kept:
        event = texts.receipt.event() if texts.receipt else None
        if event is None:
            raise Moved
        return Kept(
            version_id=event.version_id, document_id=event.document_id, code=code, rules=rules
        )
