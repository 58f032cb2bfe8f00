"""Sign-in in a browser: cookies, CSRF, other sites, the change of the first password."""

import re
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import httpx
import pytest

from services.ui.app import create_app
from services.ui.front import ROUTES
from services.ui.identity import Accounts
from services.ui.site import local_path
from tests.unit.ui.conftest import CHOSEN, PASSWORD, csrf, settings, sign_in, value_of
from tests.unit.ui.fake import Fake, served, version

ID = version().version_id
PAGES = ("/", "/ui/documents", "/ui/upload", f"/ui/documents/{ID}", f"/ui/jobs/{ID}",
         f"/ui/documents/{ID}/markdown")  # fmt: skip


def cookie_of(answer: httpx.Response, name: str) -> str:
    return next(c for c in answer.headers.get_list("set-cookie") if c.startswith(f"{name}="))


async def test_every_page_sends_a_stranger_to_the_sign_in(
    browser: httpx.AsyncClient, fake: Fake
) -> None:
    for path in PAGES:
        answer = await browser.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/ui/sign-in?next=%2F"), path
    assert fake.seen == []


async def test_a_new_password_opens_the_pages(browser: httpx.AsyncClient) -> None:
    await sign_in(browser, PASSWORD)
    token = await csrf(browser, "/ui/password")
    fields = {"csrf": token, "old": PASSWORD, "new": CHOSEN, "again": CHOSEN}
    answer = await browser.post("/ui/password", data=fields)

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (await browser.get("/")).status_code == 200


async def test_after_the_sign_in_one_comes_back_to_the_page(person: httpx.AsyncClient) -> None:
    person.cookies.clear()
    wanted = f"/ui/documents/{ID}?start=1&end=9"
    form = await person.get((await person.get(wanted)).headers["location"])
    token = value_of(form.text, "token")
    fields = {"name": "admin", "password": CHOSEN, "token": token, "next": wanted}
    answer = await person.post("/ui/sign-in", data=fields)
    welcome = await person.get(answer.headers["location"])

    assert welcome.headers["location"] == wanted
    assert (await person.get(wanted)).status_code == 200


async def test_the_first_password_opens_nothing_but_its_change(
    browser: httpx.AsyncClient, fake: Fake
) -> None:
    assert (await sign_in(browser, PASSWORD)).status_code == 303
    for path in PAGES:
        assert (await browser.get(path)).headers["location"] == "/ui/password"
    for route in ROUTES:
        answer = await browser.request(route.method, route.path.replace("{id}", ID))
        assert answer.json()["type"] == "urn:kb:problem:password-change-required"
    assert fake.seen == []


async def test_a_wrong_password_says_so_and_opens_nothing(browser: httpx.AsyncClient) -> None:
    answer = await sign_in(browser, "a wrong password")

    assert answer.status_code == 401
    assert "Name or password is wrong." in answer.text
    assert "kb_session" not in browser.cookies


async def test_guessing_gets_429_and_a_word_about_it(browser: httpx.AsyncClient) -> None:
    for _ in range(5):
        await sign_in(browser, "guess")
    answer = await sign_in(browser, PASSWORD)

    assert answer.status_code == 429
    assert "Wait a few minutes" in answer.text


async def test_two_new_passwords_that_differ_change_nothing(browser: httpx.AsyncClient) -> None:
    await sign_in(browser, PASSWORD)
    token = await csrf(browser, "/ui/password")
    fields = {"csrf": token, "old": PASSWORD, "new": CHOSEN, "again": CHOSEN + "!"}
    answer = await browser.post("/ui/password", data=fields)

    assert answer.status_code == 422
    assert "differ" in answer.text


async def test_the_cookie_on_loopback_is_http_only_and_lax(browser: httpx.AsyncClient) -> None:
    cookie = cookie_of(await sign_in(browser, PASSWORD), "kb_session").lower()

    assert "httponly" in cookie and "samesite=lax" in cookie and "path=/" in cookie
    assert "max-age=43200" in cookie and "domain" not in cookie and "secure" not in cookie


async def test_the_cookie_elsewhere_is_a_secure_host_cookie(
    internal: str, accounts: Accounts
) -> None:
    await accounts.bootstrap(PASSWORD)
    app = create_app(settings(internal, public_host="kb.example"), None, accounts=accounts)
    headers = {"host": "kb.example", "x-forwarded-proto": "https"}
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        form = await client.get("/ui/sign-in")
        token = value_of(form.text, "token")
        pair = SimpleCookie(cookie_of(form, "kb_form"))["kb_form"].value
        answer = await client.post(
            "/ui/sign-in",
            data={"name": "admin", "password": PASSWORD, "token": token},
            headers={"cookie": f"kb_form={pair}"},
        )
    cookie = cookie_of(answer, "__Host-kb").lower()
    assert "secure" in cookie and "path=/;" in cookie and "domain" not in cookie


async def test_a_browser_that_drops_the_cookie_is_told_why(browser: httpx.AsyncClient) -> None:
    answer = await sign_in(browser, PASSWORD)
    browser.cookies.clear()
    back = await browser.get(answer.headers["location"])
    form = await browser.get(back.headers["location"])

    assert "did not keep the sign-in" in form.text


async def test_signing_in_again_gives_a_new_secret_and_ends_the_old(
    person: httpx.AsyncClient,
) -> None:
    old = person.cookies["kb_session"]
    await person.post("/ui/sign-out", data={"csrf": await csrf(person)})
    person.cookies.set("kb_session", old, domain="127.0.0.1")
    assert (await person.get("/")).status_code == 303
    await sign_in(person, CHOSEN)
    assert [c.value for c in person.cookies.jar if c.name == "kb_session"] != [old]


@pytest.mark.parametrize("given", [None, "", "x" * 43, "\u00e4"])
async def test_no_form_without_its_token(
    person: httpx.AsyncClient, fake: Fake, given: str | None
) -> None:
    fields = {} if given is None else {"csrf": given}
    files = {"file": ("a.txt", b"text")}
    answers = [
        await person.post("/ui/sign-out", data=fields),
        await person.post("/ui/password", data=fields),
        await person.post("/ui/upload", data=fields, files=files),
        await person.post(f"/ui/review/{ID}", data={**DECISION, **fields}),
    ]
    assert {a.status_code for a in answers} <= {403, 422}
    assert answers[0].status_code == answers[2].status_code == 403
    assert not [s for s in fake.seen if s.method == "POST"]
    assert (await person.get("/")).status_code == 200


async def test_the_sign_in_form_needs_its_cookie_and_its_token(browser: httpx.AsyncClient) -> None:
    """Otherwise another site could sign a browser in as somebody else."""
    fields = {"name": "admin", "password": PASSWORD}
    assert (await browser.post("/ui/sign-in", data=fields)).status_code == 403
    token = value_of((await browser.get("/ui/sign-in")).text, "token")
    browser.cookies.clear()
    answer = await browser.post("/ui/sign-in", data={**fields, "token": token})
    assert answer.status_code == 403
    assert "kb_session" not in browser.cookies


async def test_a_post_to_the_api_by_a_session_needs_the_header(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    token = await csrf(person)
    for headers in (
        {},
        {"x-csrf-token": "x"},
        {"x-csrf-token": token, "origin": "https://evil.example"},
    ):
        answer = await person.post("/query", json={"query": "x"}, headers=headers)
        assert answer.status_code == 403
    assert not [s for s in fake.seen if s.path == "/query"]
    own = {"x-csrf-token": token, "origin": str(person.base_url).rstrip("/")}
    assert (await person.post("/query", json={"query": "x"}, headers=own)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"referer": "https://evil.example/page"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_form_of_another_site_is_refused(
    person: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await person.post("/ui/sign-out", data={"csrf": await csrf(person)}, headers=headers)

    assert answer.status_code == 403
    assert (await person.get("/")).status_code == 200


async def test_a_person_acts_under_an_opaque_id(person: httpx.AsyncClient, fake: Fake) -> None:
    await person.get("/documents", headers={"x-kb-actor": "actor:somebody-else"})
    await person.get("/ui/documents")

    actors = {s.headers["x-kb-actor"] for s in fake.seen}
    assert len(actors) == 1
    assert re.fullmatch(r"actor:[0-9a-f-]{36}", actors.pop())


async def test_a_wrong_key_is_not_made_good_by_a_session(person: httpx.AsyncClient) -> None:
    answer = await person.get("/documents", headers={"authorization": "Bearer wrong"})

    assert answer.status_code == 401


DECISION = {"decision": "reject", "reason": "x", "text_sha256": "a" * 64}


async def test_a_role_allows_what_its_routes_ask_for(
    person: httpx.AsyncClient, accounts: Accounts, fake: Fake
) -> None:
    token = await csrf(person)
    headers = {"x-csrf-token": token}
    rank = {"viewer": 0, "editor": 1, "admin": 2}
    for role, level in rank.items():
        await accounts._pool.execute("UPDATE auth.account SET role = $1", role)
        for route in ROUTES:
            path = route.path.replace("{id}", ID)
            async with person.stream(route.method, path, headers=headers) as answer:
                allowed = rank[route.role] <= level
                assert (answer.status_code < 300) == allowed, (role, route.path)
                assert allowed or answer.status_code == 403
        upload = await person.post("/ui/upload", data={"csrf": token}, files={"file": ("a", b"x")})
        assert (upload.status_code == 403) == (role == "viewer")
        review = await person.post(f"/ui/review/{ID}", data={"csrf": token, **DECISION})
        pages = [await person.get(p) for p in ("/ui/review", f"/ui/review/{ID}")]
        assert {a.status_code == 403 for a in (review, *pages)} == {role == "viewer"}
        sent = [s.headers["x-kb-role"] for s in fake.seen if s.path == f"/review/{ID}"]
        assert set(sent[-3:]) == (set() if role == "viewer" else {role})


async def test_the_event_stream_of_a_session_is_renewed(
    internal: str, accounts: Accounts, fake: Fake
) -> None:
    """A stream would otherwise outlive the session that opened it."""
    await accounts.bootstrap(PASSWORD)
    app = create_app(settings(internal, session_stream_seconds=0.2), None, accounts=accounts)
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=10) as client:
        token = await accounts.sign_in("admin", PASSWORD, "", None)
        who = await accounts.person(token)
        assert who
        client.cookies.set("kb_session", await accounts.change_password(who, PASSWORD, CHOSEN))
        answer = await client.get("/events")
    assert b"event: Indexed" in answer.content
    assert fake.events_closed.is_set()


async def test_pages_have_a_strict_policy_and_no_inline_code(person: httpx.AsyncClient) -> None:
    for path in (*PAGES, "/?q=fine", "/ui/password", "/ui/nothing"):
        answer = await person.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        if "html" in answer.headers["content-type"]:
            tags = " ".join(re.findall(r"<[^>]*>", answer.text))
            assert not re.search(r"\sstyle=|\son\w+=|<style|<script>|javascript:", tags)
            assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)


async def test_static_files_are_cached_for_ever_and_only_files(browser: httpx.AsyncClient) -> None:
    page = (await browser.get("/ui/sign-in")).text
    for link in re.findall(r"(?:src|href)=\"(/ui/static/[^\"]+)\"", page):
        answer = await browser.get(link)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for path in ("/ui/static/../app.py", "/ui/static/%2e%2e/app.py", "/ui/static/"):
        assert (await browser.get(path)).status_code == 404


async def test_without_a_database_pages_say_so(front: str) -> None:
    async with httpx.AsyncClient(base_url=front) as client:
        answer = await client.get("/")

    assert answer.status_code == 503
    assert "no database" in answer.text


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "javascript:alert(1)",
     "/\t/evil.example", "/ok\r\nset-cookie: a=b", "", None, "ui"],
)  # fmt: skip
def test_the_sign_in_never_leads_to_another_site(target: str | None) -> None:
    assert local_path(target) == "/"


def test_the_sign_in_leads_back_with_its_query() -> None:
    assert urlsplit(local_path("/ui/documents/abc?start=1&end=2")).query == "start=1&end=2"
