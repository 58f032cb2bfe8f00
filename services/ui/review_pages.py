"""The pages of the review: what waits for a person, and one text with its findings marked."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from contracts.http import DocumentPage, ReviewView
from kernel.errors import Refusal
from services.ui import view
from services.ui.access import check_origin, check_token
from services.ui.identity import Person
from services.ui.site import REVIEWER, Site, is_fragment

PAGE_SIZE = 50


def add_review(pages: APIRouter, site: Site) -> None:
    """`/ui/review` and `/ui/review/{version_id}`, for editors and administrators."""

    async def reviewer(request: Request) -> Person:
        person = await site.signed_in(request)
        if not site.may(person, REVIEWER):
            raise Refusal("forbidden", f"this needs the role {REVIEWER}", status=403)
        return person

    @pages.get("/ui/review")
    async def waiting(request: Request) -> Response:
        person = await reviewer(request)
        position = await site.position()
        get = request.query_params.get
        project, cursor = get("project", "").strip() or None, get("cursor") or None
        page = await site.upstream.get(
            DocumentPage,
            "search",
            "/documents",
            person.actor,
            {"status": "review", "limit": PAGE_SIZE, "project": project, "cursor": cursor},
        )
        which = {"project": project} if project else {}
        here = which | ({"cursor": cursor} if cursor else {})
        following = which | {"cursor": page.next} if page.next else None
        return site.page(
            request,
            "_waiting.html" if is_fragment(request) else "waiting.html",
            person,
            position=position,
            page=page,
            project=project,
            newest=f"/ui/review?{urlencode(which)}" if cursor else None,
            here=f"/ui/review?{urlencode(here)}",
            following=f"/ui/review?{urlencode(following)}" if following else None,
        )

    @pages.get("/ui/review/{key}")
    async def one(request: Request, key: str) -> Response:
        person = await reviewer(request)
        shown = await site.upstream.get(
            ReviewView, "scanner", f"/review/{site.checked_id(key)}", person.actor, role=person.role
        )
        return site.page(
            request, "review.html", person, review=shown, texts=view.marked_texts(shown)
        )

    @pages.post("/ui/review/{key}")
    async def decide(
        request: Request,
        key: str,
        csrf: Annotated[str, Form()],
        decision: Annotated[str, Form()],
        text_sha256: Annotated[str, Form(max_length=64)],
        reason: Annotated[str, Form(max_length=2000)] = "",
    ) -> Response:
        person = await reviewer(request)
        check_origin(request)
        check_token(person.csrf, csrf)
        if decision not in {"release", "reject"}:
            raise Refusal("invalid-request", "decision")
        # A text area has lines; a reason is one.
        said = " ".join(reason.split())
        await site.upstream.read(
            "scanner",
            "POST",
            f"/review/{site.checked_id(key)}",
            person.actor,
            limit=1 << 20,
            role=person.role,
            json={"decision": decision, "reason": said, "text_sha256": text_sha256},
        )
        site.recount()
        return RedirectResponse(f"/ui/documents/{key}", 303)
