"""Sign-in, sign-out and the change of a password."""

import secrets
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from kernel.errors import Refusal
from services.ui.access import check_origin, check_token, cookie_name, drop_cookie, put_cookie
from services.ui.site import SeeOtherError, Site, local_path

FORM_COOKIE = "kb_form"
FORM_SECONDS = 3600


def router(site: Site) -> APIRouter:
    """The pages that work without a finished sign-in."""
    pages = APIRouter(include_in_schema=False)
    _add_sign_in(pages, site)
    _add_password(pages, site)
    return pages


def _form(
    request: Request, site: Site, to: str, code: str | None = None, status: int = 200
) -> Response:
    """The sign-in form. Its token is also in a cookie, so no other site can sign a browser in."""
    token = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
    page = site.page(
        request, "sign_in.html", None, status=status, to=to, token=token, code=code,
        no_cookie="signed" in request.query_params,
    )  # fmt: skip
    put_cookie(request, page, FORM_COOKIE, token, FORM_SECONDS)
    return page


def _add_sign_in(pages: APIRouter, site: Site) -> None:
    @pages.get("/ui/sign-in")
    async def sign_in(request: Request) -> Response:
        to = local_path(request.query_params.get("next"))
        if await site.access.person(request):
            return RedirectResponse(to, 303)
        site.access.accounts  # noqa: B018 - says so when there is no database
        return _form(request, site, to)

    @pages.post("/ui/sign-in")
    async def signed_in(
        request: Request,
        name: Annotated[str, Form(max_length=256)] = "",
        password: Annotated[str, Form()] = "",
        token: Annotated[str, Form()] = "",
        to: Annotated[str, Form(alias="next")] = "/",
    ) -> Response:
        target = local_path(to)
        try:
            check_origin(request)
            check_token(request.cookies.get(FORM_COOKIE) or secrets.token_hex(), token)
            address = request.client.host if request.client else ""
            old = request.cookies.get(cookie_name(request))
            secret = await site.access.accounts.sign_in(name, password, address, old)
        except Refusal as refused:
            if refused.code == "no-accounts":
                raise
            return _form(request, site, target, refused.code, refused.status)
        # `signed` tells the form, should the browser come back without the cookie, to say why.
        answer = RedirectResponse(f"/ui/welcome?next={quote(target, safe='')}", 303)
        drop_cookie(request, answer, FORM_COOKIE)
        site.access.set_cookie(request, answer, secret)
        return answer

    @pages.get("/ui/welcome")
    async def welcome(request: Request) -> Response:
        to = local_path(request.query_params.get("next"))
        if await site.access.person(request):
            return RedirectResponse(to, 303)
        return RedirectResponse(f"/ui/sign-in?signed&next={quote(to, safe='')}", 303)

    @pages.post("/ui/sign-out")
    async def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
        person = await site.access.person(request)
        if person:
            check_origin(request)
            check_token(person.csrf, csrf)
            await site.access.accounts.sign_out(request.cookies[cookie_name(request)])
        answer = RedirectResponse("/ui/sign-in", 303)
        drop_cookie(request, answer, cookie_name(request))
        return answer


def _add_password(pages: APIRouter, site: Site) -> None:
    @pages.get("/ui/password")
    async def password(request: Request) -> Response:
        person = await site.access.person(request)
        if person is None:
            raise SeeOtherError("/ui/sign-in?next=/ui/password")
        return site.page(request, "password.html", person, code=None)

    @pages.post("/ui/password")
    async def changed(
        request: Request,
        csrf: Annotated[str, Form()] = "",
        old: Annotated[str, Form()] = "",
        new: Annotated[str, Form()] = "",
        again: Annotated[str, Form()] = "",
    ) -> Response:
        person = await site.access.person(request)
        if person is None:
            raise SeeOtherError("/ui/sign-in?next=/ui/password")
        check_origin(request)
        check_token(person.csrf, csrf)
        try:
            if new != again:
                raise Refusal("differ", "the two new passwords differ")
            secret = await site.access.accounts.change_password(person, old, new)
        except Refusal as refused:
            return site.page(request, "password.html", person, status=422, code=refused.code)
        answer = RedirectResponse("/", 303)
        site.access.set_cookie(request, answer, secret)
        return answer
