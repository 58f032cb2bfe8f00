"""Who may do what: host names, API key, session cookie, CSRF, and the headers of every answer."""

import hashlib
import hmac
import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernel.errors import Refusal
from kernel.web import problem
from services.ui.identity import Accounts, Person
from services.ui.settings import UiSettings

SECURE_COOKIE, LOOPBACK_COOKIE = "__Host-kb", "kb_session"
RANK = {"viewer": 0, "editor": 1, "admin": 2}
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?\Z")
OPEN_TO_ALL_HOSTS = frozenset({"/health"})
"""A probe calls by address; what it learns is one word a service."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Caller:
    """Who sent a request: a program with the key (`person` is None) or a signed-in person."""

    actor: str
    role: str
    person: Person | None = None

    def may(self, role: str) -> bool:
        """Whether this caller's role is `role` or above it."""
        return RANK[self.role] >= RANK[role]


def host_name(host: str) -> str:
    """The name in a Host header, lower case, without port and brackets; "" if it is malformed."""
    found = _HOST.match(host.lower())
    return (found[1] or found[2]).rstrip(".") if found else ""


def is_loopback(name: str) -> bool:
    """`localhost`, a name below it, or a loopback address."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_page(path: str) -> bool:
    """Whether people look at this path (HTML), rather than programs (JSON)."""
    return path in {"/", "/ui"} or path.startswith("/ui/")


class Guard:
    """ASGI: refuses foreign Host names (DNS rebinding), puts the safety headers on every answer."""

    def __init__(self, app: ASGIApp, settings: UiSettings) -> None:
        self._app, self._hosts = app, settings.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = host_name(Headers(scope=scope).get("host", ""))
        page = is_page(scope["path"])

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = PAGE_POLICY if page else DATA_POLICY
                for key, value in HEADERS.items():
                    headers[key] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        known = is_loopback(name) or name in self._hosts or scope["path"] in OPEN_TO_ALL_HOSTS
        if known:
            await self._app(scope, receive, with_headers)
        else:
            refusal = problem("unknown-host", "KB_PUBLIC_HOST does not name this host", 421)
            await refusal(scope, receive, with_headers)


class Access:
    """Finds the caller of a request."""

    def __init__(self, settings: UiSettings, accounts: Accounts | None) -> None:
        self._accounts = accounts
        self._key = _digest(settings.key) if settings.key else None
        self._max_age = int(settings.session_hours * 3600)

    @property
    def accounts(self) -> Accounts:
        """The accounts.

        Raises:
            Refusal: `no-accounts` (503): this process has no database.
        """
        if self._accounts is None:
            raise Refusal("no-accounts", "sign-in is not set up: no database", status=503)
        return self._accounts

    async def api_caller(self, request: Request, role: str) -> Caller:
        """The caller of an API route that asks for at least `role`.

        Raises:
            Refusal: 503 without a configured key, 401 unknown, 403 not allowed.
        """
        if self._key is None:
            raise Refusal("not-configured", "KB_API_KEY is not set: the API is closed", status=503)
        caller = self._by_key(request, self._key) or await self._by_session(request)
        if not caller.may(role):
            raise Refusal("forbidden", f"this needs the role {role}", status=403)
        return caller

    def _by_key(self, request: Request, key: bytes) -> Caller | None:
        given = request.headers.get("authorization")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        # Digests are compared: equal length, so the time tells nothing about the key.
        right = hmac.compare_digest(_digest(token.strip()), key)
        if scheme.lower() != "bearer" or not right:
            raise Refusal("unauthorized", "the API key is wrong", status=401)
        return Caller("api", "admin")

    async def _by_session(self, request: Request) -> Caller:
        person = await self.person(request)
        if person is None:
            raise Refusal("unauthorized", "send the API key, or sign in", status=401)
        if person.must_change:
            raise Refusal("password-change-required", "change your password first", status=403)
        if request.method not in {"GET", "HEAD"}:
            check_origin(request)
            check_token(person.csrf, request.headers.get("x-csrf-token"))
        return Caller(person.actor, person.role, person)

    async def person(self, request: Request) -> Person | None:
        """Who is signed in, if anybody."""
        token = request.cookies.get(cookie_name(request))
        return await self.accounts.person(token) if token and self._accounts else None

    def set_cookie(self, request: Request, response: Response, token: str) -> None:
        """Give the browser the secret of its session."""
        put_cookie(request, response, cookie_name(request), token, self._max_age)


def put_cookie(request: Request, response: Response, name: str, value: str, age: int) -> None:
    """A cookie that scripts cannot read and other sites do not send along with a POST."""
    response.set_cookie(
        name, value, max_age=age, path="/", httponly=True, samesite="lax", secure=_secure(request)
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Make the browser forget a cookie."""
    response.delete_cookie(name, path="/", httponly=True, samesite="lax", secure=_secure(request))


def cookie_name(request: Request) -> str:
    """`__Host-kb`, or `kb_session` on loopback without TLS (browsers refuse the former there)."""
    return SECURE_COOKIE if _secure(request) else LOOPBACK_COOKIE


def _secure(request: Request) -> bool:
    return request.url.scheme == "https" or not is_loopback(
        host_name(request.headers.get("host", ""))
    )


def check_origin(request: Request) -> None:
    """A changing request must come from our own pages.

    Raises:
        Refusal: `wrong-origin` (403).
    """
    host = request.headers.get("host", "").lower()
    origin = request.headers.get("origin") or request.headers.get("referer")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != host
    if foreign or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Refusal("wrong-origin", "this request came from another site", status=403)


def check_token(expected: str, given: Any) -> None:
    """The token of the form, or of the header X-CSRF-Token, is the one of the session.

    Raises:
        Refusal: `wrong-token` (403).
    """
    if not isinstance(given, str) or not hmac.compare_digest(_digest(given), _digest(expected)):
        raise Refusal("wrong-token", "the page is out of date: reload it and try again", status=403)


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
