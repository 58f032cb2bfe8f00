"""The pages: search, documents, upload, one document."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from markupsafe import Markup
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import Response

from contracts.http import Accepted, DocumentPage, DocumentView, JobView, Journal, VersionView
from contracts.query import QueryReply, QueryRequest
from kernel.errors import Refusal
from services.ui import markdown, view
from services.ui.access import check_origin, check_token
from services.ui.front import Relay
from services.ui.identity import Person, utcnow
from services.ui.review_pages import add_review
from services.ui.site import REVIEWER, Site, is_fragment
from services.ui.time_pages import add_time
from services.ui.upstream import parse

BODY_LIMIT = 32 << 20
PAGE_SIZE = 50
MAX_FILES = 200
NEW_SECONDS = 3.0
FORM_BYTES = 1 << 20
DEPTHS = (10, 30, 100)


def router(site: Site) -> APIRouter:
    """Every page that needs a session."""
    pages = APIRouter(include_in_schema=False)
    _add_search(pages, site)
    _add_documents(pages, site)
    _add_upload(pages, site)
    _add_document(pages, site)
    add_time(pages, site)
    add_review(pages, site)
    return pages


@dataclass(frozen=True)
class Question:
    """The search form as it was sent; `given` False when nothing was asked yet."""

    q: str = ""
    as_of: str = ""
    project: str = "default"
    historical: bool = False
    depth: int = DEPTHS[0]

    def deeper(self) -> str | None:
        """The same question with more passages, as a link; None at the end."""
        more = next((d for d in DEPTHS if d > self.depth), None)
        if more is None:
            return None
        options = {"as_of": self.as_of, "historical": "1" if self.historical else ""}
        query = {"q": self.q, "project": self.project, **options, "depth": str(more)}
        return "/?" + urlencode({k: v for k, v in query.items() if v})

    @property
    def given(self) -> bool:
        return bool(self.q.strip())

    def request(self) -> QueryRequest:
        """The contract's request.

        Raises:
            Refusal: `invalid-request` (422).
        """
        try:
            return QueryRequest(
                query=self.q,
                top_k=self.depth,
                as_of=self.as_of or None,
                include_historical=self.historical,
                project=self.project,
            )
        except ValidationError as error:
            where = ", ".join(str(e["loc"][0]) for e in error.errors() if e["loc"])
            raise Refusal("invalid-request", where or "as_of") from error


def question_of(request: Request) -> Question:
    """The search form in a query string."""
    get = request.query_params.get
    return Question(
        q=get("q", ""),
        as_of=get("as_of", "").strip(),
        project=get("project", "").strip() or "default",
        historical=get("historical") == "1",
        depth=next((d for d in DEPTHS if str(d) == get("depth")), DEPTHS[0]),
    )


def _add_search(pages: APIRouter, site: Site) -> None:
    @pages.get("/")
    async def search(request: Request) -> Response:
        person = await site.signed_in(request)
        question = question_of(request)
        reply, refusal, empty = None, None, False
        if question.given:
            try:
                reply = await _ask(site, person, question)
            except Refusal as refused:
                refusal = refused
        else:
            empty = await _is_empty(site, person)
        template = "_results.html" if is_fragment(request) else "search.html"
        return site.page(
            request,
            template,
            person,
            # A fragment with an error status would not say more than the page does.
            status=refusal.status if refusal and template == "search.html" else 200,
            question=question,
            reply=reply,
            refusal=refusal,
            empty=empty,
            deeper=question.deeper() if reply and len(reply.results) >= question.depth else None,
            cards=view.cards(reply, question.q, utcnow()) if reply else [],
        )


async def _ask(site: Site, person: Person, question: Question) -> QueryReply:
    asked = question.request().model_dump_json(exclude_defaults=True)
    body = await site.upstream.read(
        "search", "POST", "/query", person.actor, limit=8 << 20, content=asked.encode()
    )
    return parse(QueryReply, "search", body)


async def _is_empty(site: Site, person: Person) -> bool:
    try:
        page = await site.upstream.get(
            DocumentPage, "search", "/documents", person.actor, {"limit": 1}
        )
    except Refusal:
        return False  # the search itself will say what is wrong
    return not page.documents


def _add_documents(pages: APIRouter, site: Site) -> None:
    @pages.get("/ui/documents")
    async def documents(request: Request) -> Response:
        person = await site.signed_in(request)
        project = request.query_params.get("project", "").strip() or None
        trusted = "true" if request.query_params.get("trusted") == "true" else None
        as_of = request.query_params.get("as_of", "").strip() or None
        cursor = request.query_params.get("cursor") or None
        given = {"project": project, "trusted": trusted, "as_of": as_of}
        which = {k: v for k, v in given.items() if v}
        position = await site.position()
        page = await site.upstream.get(
            DocumentPage,
            "search",
            "/documents",
            person.actor,
            {"limit": PAGE_SIZE, **which, "cursor": cursor},
        )
        here = which | ({"cursor": cursor} if cursor else {})
        return site.page(
            request,
            "_documents.html" if is_fragment(request) else "documents.html",
            person,
            position=position,
            page=page,
            project=project,
            trusted=trusted,
            as_of=as_of,
            now=utcnow(),
            cursor=cursor,
            here=f"/ui/documents?{urlencode(here)}",
            newest=f"/ui/documents?{urlencode(which)}",
            following=f"/ui/documents?{urlencode(which | {'cursor': page.next})}"
            if page.next
            else None,
        )


def _add_upload(pages: APIRouter, site: Site) -> None:
    @pages.get("/ui/upload")
    async def upload(request: Request) -> Response:
        person = await site.signed_in(request)
        return site.page(
            request,
            "upload.html",
            person,
            outcomes=[],
            message=None,
            position=await site.position(),
        )

    @pages.post("/ui/upload")
    async def uploaded(request: Request) -> Response:
        """The form as a browser without scripts sends it; with scripts it is POST /documents."""
        person = await site.signed_in(request)
        check_origin(request)
        if not site.may(person, "editor"):
            raise Refusal("forbidden", "this needs the role editor", status=403)
        check_length(request, site.max_upload_bytes + FORM_BYTES)
        # Starlette keeps each file on disk beyond 1 MB.
        async with request.form(max_files=MAX_FILES, max_fields=20) as form:
            check_token(person.csrf, form.get("csrf"))
            files = [f for f in form.getlist("file") if isinstance(f, UploadFile) and f.filename]
            fields = {
                name: value.strip()
                for name in ("project", "valid_from")
                if isinstance(value := form.get(name), str) and value.strip()
            }
            outcomes = [await _send(site, person, file, fields) for file in files]
        message = None if outcomes else site.t("upload.no_files")
        return site.page(
            request,
            "upload.html",
            person,
            position=await site.position(),
            status=200 if outcomes else 422,
            outcomes=outcomes,
            message=message,
        )

    @pages.get("/ui/jobs/{job_id}")
    async def job(request: Request, job_id: str) -> Response:
        person = await site.signed_in(request)
        found = await site.upstream.get(
            JobView, "search", f"/jobs/{site.checked_id(job_id)}", person.actor
        )
        return site.page(request, "_job.html", person, job=found)


def check_length(request: Request, limit: int) -> None:
    """A form is kept on disk until it is passed on, so its length must be known and fit.

    Raises:
        Refusal: `length-required` (411) or `upload-too-large` (413).
    """
    declared = request.headers.get("content-length", "")
    if not declared.isdecimal():
        raise Refusal("length-required", "send a Content-Length", status=411)
    if int(declared) > limit:
        raise Refusal("upload-too-large", f"more than {limit} bytes in one form", status=413)


@dataclass(frozen=True)
class Outcome:
    """What became of one file of the form."""

    name: str
    accepted: Accepted | None = None
    job: JobView | None = None
    refusal: Refusal | None = None


async def _send(site: Site, person: Person, file: UploadFile, fields: dict[str, str]) -> Outcome:
    name = str(file.filename)
    media_type = file.content_type or "application/octet-stream"
    try:
        body = await site.upstream.read(
            "ingest",
            "POST",
            "/documents",
            person.actor,
            limit=1 << 20,
            data=fields,
            files={"file": (name, file.file, media_type)},
        )
        return Outcome(name, accepted=parse(Accepted, "ingest", body))
    except Refusal as refused:
        return Outcome(name, refusal=refused)


def _add_document(pages: APIRouter, site: Site) -> None:
    @pages.get("/ui/documents/{key}")
    async def document(request: Request, key: str) -> Response:
        person = await site.signed_in(request)
        position = await site.position()
        patience = NEW_SECONDS if "new" in request.query_params else 0
        as_of = request.query_params.get("as_of", "").strip()
        found = await _document(site, person, site.checked_id(key), patience)
        then = await _as_of(site, person, key, as_of) if as_of else None
        journal = await site.upstream.get(
            Journal, "search", f"/documents/{key}/journal", person.actor
        )
        shown = then if isinstance(then, DocumentView) else view.version_of(found, key)
        text = await _text(site, person, shown, request)
        actors = [e.actor for e in journal.entries] + ([shown.trust.actor] if shown.trust else [])
        return site.page(
            request,
            "document.html",
            person,
            position=position,
            versions=found.versions,
            version=shown,
            current=next((v for v in found.versions if v.current), None),
            text=text,
            journal=view.journal_lines(journal.entries, site.t),
            called=await site.access.accounts.names(actors),
            verdict=view.verdict_on(journal.entries, shown.version_id),
            now=utcnow(),
            as_of=as_of,
            refusal=then if isinstance(then, Refusal) else None,
            may_review=site.may(person, REVIEWER),
        )

    @pages.get("/ui/documents/{key}/markdown")
    async def raw(request: Request, key: str) -> Response:
        """The canonical text, for people who have no key."""
        person = await site.signed_in(request)
        path = f"/documents/{site.checked_id(key)}/body"
        reply = Relay(await site.upstream.stream("search", path, person.actor), None)
        reply.headers["content-type"] = "text/plain; charset=utf-8"
        return reply


async def _as_of(site: Site, person: Person, key: str, day: str) -> DocumentView | Refusal:
    """The document as of a day, or why there is none: the page says so, above what is there now."""
    try:
        return await site.upstream.get(
            DocumentView, "search", f"/documents/{key}", person.actor, {"as_of": day}
        )
    except Refusal as refused:
        if refused.code not in {"not-valid-then", "invalid-request"}:
            raise
        return refused


async def _document(site: Site, person: Person, key: str, patience: float) -> DocumentView:
    """A document; one that was accepted a moment ago may take a moment to be known."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await site.upstream.get(
                DocumentView, "search", f"/documents/{key}", person.actor
            )
        except Refusal as refused:
            late = asyncio.get_running_loop().time() > deadline
            if refused.status != HTTPStatus.NOT_FOUND or late:
                raise
            await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Text:
    """A part of a body as HTML, its outline, and the passage that was asked for."""

    html: Markup
    outline: list[tuple[markdown.Heading, str]]
    part: int
    parts: int
    passage: tuple[int, int] | None
    missing: tuple[str, str] | None


async def _text(site: Site, person: Person, version: VersionView, request: Request) -> Text | None:
    """The text of a version, if there is one to show."""
    if version.body_sha256 is None or version.status in {"review", "rejected", "blocked", "erased"}:
        return None
    try:
        body = await site.upstream.read(
            "search", "GET", f"/documents/{version.version_id}/body", person.actor,
            limit=BODY_LIMIT,
        )  # fmt: skip
    except Refusal as refused:
        if refused.code in {"no-body", "not-found"}:
            return None
        raise
    query = request.query_params
    return await asyncio.to_thread(
        make_text, body, version.version_id, (query.get("start"), query.get("end")),
        query.get("part", ""),
    )  # fmt: skip


def make_text(
    body: bytes, version_id: str, asked: tuple[str | None, str | None], part: str
) -> Text:
    """Render the part that was asked for, or the one with the passage, or the first."""
    all_parts = markdown.parts(body)
    passage = passage_of(asked, len(body))
    missing = None if passage or asked == (None, None) else (asked[0] or "?", asked[1] or "?")
    index = markdown.part_at(all_parts, passage[0]) if passage else 0
    if part.isdecimal() and 0 < int(part) <= len(all_parts):
        index = int(part) - 1
    here = all_parts[index]
    html = markdown.render(body[here.start : here.end], base=here.start, passage=passage)
    many = len(all_parts) > 1

    def link(heading: markdown.Heading) -> str:
        where = markdown.part_at(all_parts, heading.start)
        page = f"/ui/documents/{version_id}?part={where + 1}" if many and where != index else ""
        return f"{page}#{heading.anchor}"

    headings = [h for h in markdown.outline(body) if h.level <= 4][:400]
    return Text(
        html=Markup(html),  # noqa: S704 - made safe by markdown.render
        outline=[(h, link(h)) for h in headings],
        part=index + 1,
        parts=len(all_parts),
        passage=passage,
        missing=missing,
    )


def passage_of(asked: tuple[Any, Any], length: int) -> tuple[int, int] | None:
    """The byte range of a deep link, if the body has it."""
    if not all(isinstance(a, str) and a.isdecimal() and len(a) < 12 for a in asked):
        return None
    start, end = int(asked[0]), int(asked[1])
    return (start, end) if 0 <= start < end <= length else None
