"""What every page needs: the session, the templates, the internal services."""

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request
from jinja2 import Environment
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kernel.errors import KbError, Refusal
from services.ui.access import RANK, Access
from services.ui.identity import Person
from services.ui.strings import Strings
from services.ui.upstream import Upstream

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")


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
        return person

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
            person=person, path=request.url.path, **values
        )
        return HTMLResponse(html, status, {"vary": "HX-Request, HX-Request-Type"})

    def redirect(self, request: Request, path: str) -> Response:
        """Send the browser, or HTMX in it, to another page."""
        if request.headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"hx-redirect": path})
        return RedirectResponse(path, 303)


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
