"""What every page needs: the session, the templates, the internal services."""

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request
from jinja2 import Environment
from starlette.responses import HTMLResponse, RedirectResponse, Response

from contracts.http import DocumentPage
from kernel.errors import KbError, Refusal
from services.ui.access import RANK, Access
from services.ui.identity import Person
from services.ui.strings import Strings
from services.ui.upstream import Upstream

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
REVIEWER = "editor"
"""The role that may look at what is in quarantine, and decide."""
COUNT_SECONDS = 5.0
"""How long the number of waiting documents in the navigation is good for."""


class SeeOtherError(KbError):
    """A page that this person cannot see now; `path` is the one to see first."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Site:
    """Renders pages for signed-in people.

    `position` gives the newest position of the log: a page that was drawn then is kept up to date
    with the events after it.
    """

    def __init__(
        self,
        access: Access,
        upstream: Upstream,
        env: Environment,
        t: Strings,
        head: Callable[[], Awaitable[int]],
        max_upload_bytes: int,
    ) -> None:
        self.access, self.upstream, self.t = access, upstream, t
        self.max_upload_bytes = max_upload_bytes
        self.position = head
        self._env = env
        self._waiting: tuple[float, int | None] = (-COUNT_SECONDS, None)

    async def signed_in(self, request: Request) -> Person:
        """The person that looks at the page.

        Raises:
            SeeOtherError: the sign-in page, or the one to change the password.
        """
        person = await self.access.person(request)
        if person is None:
            self.access.accounts  # noqa: B018 - says so when there is no database
            raise SeeOtherError(f"/ui/sign-in?next={quote(_wanted(request), safe='')}")
        if person.must_change:
            raise SeeOtherError("/ui/password")
        if self.may(person, REVIEWER) and not is_fragment(request):
            request.state.waiting = await self._count(person)
        return person

    async def _count(self, person: Person) -> int | None:
        """How many documents wait for a review; None when it cannot be found out."""
        at, known = self._waiting
        if time.monotonic() - at < COUNT_SECONDS:
            return known
        try:
            page = await self.upstream.get(
                DocumentPage, "search", "/documents", person.actor, {"status": "review", "limit": 1}
            )
            known = page.total
        except Refusal:
            known = None
        self._waiting = (time.monotonic(), known)
        return known

    def recount(self) -> None:
        """Somebody decided: the number in the navigation is old."""
        self._waiting = (-COUNT_SECONDS, None)

    def may(self, person: Person, role: str) -> bool:
        """Whether the person's role is `role` or above it."""
        return RANK[person.role] >= RANK[role]

    def checked_id(self, key: str) -> str:
        """An id out of a path, safe to put into another one.

        Raises:
            Refusal: `not-found` (404).
        """
        if not _ID.match(key):
            raise Refusal("not-found", "there is nothing with this id", status=404)
        return key

    def page(
        self,
        request: Request,
        template: str,
        person: Person | None,
        *,
        status: int = 200,
        **values: Any,
    ) -> Response:
        """A template as an answer."""
        html = self._env.get_template(template).render(
            person=person,
            path=request.url.path,
            waiting=getattr(request.state, "waiting", None),
            reviews=person is not None and self.may(person, REVIEWER),
            **values,
        )
        return HTMLResponse(html, status, {"vary": "HX-Request, HX-Request-Type"})

    def redirect(self, request: Request, path: str) -> Response:
        """Send the browser, or HTMX in it, to another page."""
        if request.headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"hx-redirect": path})
        return RedirectResponse(path, 303)


def is_fragment(request: Request) -> bool:
    """Whether HTMX asks for a part of the page only."""
    get = request.headers.get
    whole = get("hx-history-restore-request") or get("hx-request-type", "partial") != "partial"
    return get("hx-request") == "true" and not whole


def local_path(value: str | None) -> str:
    """A path on this site to go to after the sign-in; anything else becomes `/`."""
    if not value or not value.startswith("/") or value.startswith("//") or "\\" in value:
        return "/"
    if any(ord(c) < 33 for c in value) or urlsplit(value).netloc:
        return "/"
    return value


def _wanted(request: Request) -> str:
    """The page that the person looks at: what a partial request would change, else the request."""
    if current := request.headers.get("hx-current-url"):
        url = urlsplit(current)
        return local_path(url.path + (f"?{url.query}" if url.query else ""))
    if request.method != "GET":
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")
