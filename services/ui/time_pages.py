"""The pages of a document over time: its history, and what changed between two versions."""

import asyncio
import re

from fastapi import APIRouter, Request
from starlette.responses import Response

from contracts.diff import DiffReply, History
from contracts.http import DocumentView
from kernel.errors import Refusal
from services.ui import changes
from services.ui.identity import Person, utcnow
from services.ui.site import Site

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def add_time(pages: APIRouter, site: Site) -> None:
    """`/ui/documents/{key}/history` and `/ui/documents/{key}/diff`."""

    @pages.get("/ui/documents/{key}/history")
    async def history(request: Request, key: str) -> Response:
        person = await site.signed_in(request)
        found = await site.upstream.get(
            History, "search", f"/documents/{site.checked_id(key)}/history", person.actor
        )
        now = utcnow()
        lines = changes.stretches(found.entries, now)
        called = await site.access.accounts.names(e.actor for e in found.entries)
        return site.page(
            request, "history.html", person, history=found, lines=lines, now=now,
            tones=changes.TONES, called=called,
        )  # fmt: skip

    @pages.get("/ui/documents/{key}/diff")
    async def diff(request: Request, key: str) -> Response:
        person = await site.signed_in(request)
        asked = {side: request.query_params.get(side, "").strip() for side in ("from", "to")}
        document, found = await asyncio.gather(
            site.upstream.get(
                DocumentView, "search", f"/documents/{site.checked_id(key)}", person.actor
            ),
            _diff(site, person, key, asked),
        )
        reply = found if isinstance(found, DiffReply) else None
        now = utcnow()
        return site.page(
            request,
            "diff.html",
            person,
            status=200 if reply else 422,
            document=document,
            asked=asked,
            days={side: name if _DAY.fullmatch(name) else "" for side, name in asked.items()},
            reply=reply,
            refusal=None if reply else found,
            sections=changes.changes(reply) if reply else [],
            counts=changes.counted(reply.counts) if reply else [],
            choices=changes.choices(document.versions, now),
            now=now,
        )


async def _diff(site: Site, person: Person, key: str, asked: dict[str, str]) -> DiffReply | Refusal:
    """The diff, or why there is none."""
    sides = {side: name or None for side, name in asked.items()}
    try:
        return await site.upstream.get(
            DiffReply, "search", f"/documents/{key}/diff", person.actor, sides
        )
    except Refusal as refused:
        if refused.code not in _OF_THE_FORM:
            raise
        return refused


_OF_THE_FORM = frozenset({
    "no-earlier-version", "not-valid-then", "no-body", "invalid-request", "too-large-to-compare",
})  # fmt: skip
"""Refusals that another choice may avoid: the form is shown again."""
