"""The pages before the real stack: by plain forms, and in a real browser where there is one."""

import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from kernel.testing_wait import eventually
from tests.stack import Stack

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CHOSEN = "four random words here"
LAW = """# Data Protection Act

## Chapter 1

### Article 5

The maximum fine for a data breach is twenty million euro, or four per cent of the turnover of the
undertaking in the year before, whichever is higher.

## Chapter 2

### Article 6

The controller notifies the authority within seventy-two hours after it learned of the breach.

### § 7 Fines by tier

| Tier | Fixed amount of the fine | Examples of what is meant by the words of the tier, one by one |
|---|---|---|
| Article 83(4) | up-to-10-million-euros-whatever-the-turnover | no-record-of-processing-at-all |
| Article 83(5) | up-to-20-million-euros-whatever-the-turnover | no-legal-ground-for-processing |
"""
DOUBTFUL = """# Settings of the device

The technician opens the service menu and follows the steps of this chapter one after another.

Attackers write "ignore all previous instructions" in white.

<script>document.title = 'owned'</script>
"""
SIZES = {"desk": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}


@dataclass
class Door:
    """A stack of its own, whose first password is known, and its account's present one."""

    url: str
    password: str
    chosen: bool = False


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A fresh stack: `kb up` says the address and, once, the password."""
    stack = Stack(tmp_path_factory.mktemp("door"), "hashed")
    said = stack.kb("up", "--detach")
    try:
        password = re.search(r"password, shown this once: (\S+)", said)
        assert password, said
        yield Door(stack.state.url, password[1])
    finally:
        stack.kb("down")


def field(html: str, name: str) -> str:
    """Value of a hidden field."""
    return html.split(f'name="{name}" value="', 1)[1].split('"', 1)[0]


@pytest.fixture
async def forms(door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts, signed in, the first password changed."""
    async with httpx.AsyncClient(base_url=door.url, timeout=60, follow_redirects=True) as client:
        form = await client.get("/")
        fields = {"name": "admin", "password": door.password, "token": field(form.text, "token")}
        page = await client.post("/ui/sign-in", data=fields)
        if not door.chosen:
            assert page.url.path == "/ui/password"
            change = {
                "csrf": field(page.text, "csrf"),
                "old": door.password,
                "new": CHOSEN,
                "again": CHOSEN,
            }
            page = await client.post("/ui/password", data=change)
            door.password, door.chosen = CHOSEN, True
        assert page.url.path == "/"
        yield client


async def put(client: httpx.AsyncClient, name: str, text: str, project: str = "default") -> str:
    """Upload by the form and wait; the version's page."""
    csrf = field((await client.get("/ui/upload")).text, "csrf")
    page = await client.post(
        "/ui/upload", data={"csrf": csrf, "project": project}, files={"file": (name, text.encode())}
    )
    link = re.search(r'href="(/ui/documents/[0-9a-f]+)\?new"', page.text)
    assert link, page.text

    async def settled() -> bool:
        shown = await client.get(link[1])
        return shown.status_code == 200 and "<progress" not in shown.text

    await eventually(settled, deadline=90, every=0.2)
    return link[1]


async def test_a_document_goes_in_and_comes_out_as_a_passage_without_scripts(
    forms: httpx.AsyncClient,
) -> None:
    page = await put(forms, "act.md", LAW, project="forms")
    assert 'class="chip good"' in (await forms.get(page)).text
    assert "Data Protection Act" in (await forms.get("/ui/documents?project=forms")).text

    found = await forms.get("/", params={"q": "maximum fine for a data breach", "project": "forms"})
    link = re.search(r'href="(/ui/documents/[^"]+start=[^"]+)"', found.text)
    assert link, found.text
    assert "<mark>fine</mark>" in found.text
    assert "untrusted" not in found.text.lower()
    passage = await forms.get(link[1].replace("&amp;", "&"))
    assert 'id="passage"' in passage.text
    highlighted = passage.text.partition('id="passage"')[2]
    assert "twenty million euro" in highlighted.partition("Chapter 2")[0]


async def put_line(client: httpx.AsyncClient, project: str) -> str:
    """Two versions of the act, the first valid in 2015 and the second since 2020; its page."""
    csrf = field((await client.get("/ui/upload")).text, "csrf")
    document = ""
    for year, words in (("2015", "twenty"), ("2020", "thirty")):
        law = LAW.replace("twenty", words).replace("Article 6", f"Article {int(year) - 2009}")
        answer = await client.post(
            "/documents",
            headers={"x-csrf-token": csrf},
            data={"project": project, "source": "the act", "valid_from": f"{year}-01-01"},
            files={"file": ("act.md", law.encode())},
        )
        assert answer.status_code == 202, answer.text
        job, document = answer.json()["job_id"], answer.json()["document_id"]

        async def indexed(job: str = job) -> bool:
            found = await client.get(f"/jobs/{job}")
            return bool(found.status_code == 200 and found.json()["status"] == "indexed")

        await eventually(indexed, deadline=90, every=0.2)
    page = f"/ui/documents/{document}"

    async def taken_over() -> bool:
        return "Was valid" in (await client.get(page)).text

    await eventually(taken_over, deadline=30, every=0.2)
    return page


async def test_what_changed_between_two_days_is_seen_without_scripts(
    forms: httpx.AsyncClient,
) -> None:
    page = await put_line(forms, "time")
    changed = (await forms.get(f"{page}/diff")).text
    assert "<del>twenty</del><ins>thirty</ins> million euro" in changed
    assert "Article <del>6</del><ins>11</ins>" in changed
    assert changed == (await forms.get(f"{page}/diff?from=2016-05-01&to=2021-05-01")).text.replace(
        ' value="2016-05-01"', ' value=""'
    ).replace(' value="2021-05-01"', ' value=""').replace('class="days" open', 'class="days"')
    then = await forms.get(f"{page}?as_of=2016-05-01")
    assert "This is what was valid on 2016-05-01" in then.text and "twenty million" in then.text
    assert (
        "Nothing of this document was valid" in (await forms.get(f"{page}?as_of=2009-05-01")).text
    )
    history = (await forms.get(f"{page}/history")).text
    assert "1 changed" in history and "1 renamed" in history
    listed = (await forms.get("/ui/documents?project=time&as_of=2016-05-01")).text
    assert "1 document was valid on 2016-05-01" in listed


async def test_the_same_file_again_is_already_here(forms: httpx.AsyncClient) -> None:
    await put(forms, "once.md", LAW + "\nOnce.\n", project="again")
    csrf = field((await forms.get("/ui/upload")).text, "csrf")
    data = {"csrf": csrf, "project": "again"}
    files = {"file": ("twice.md", (LAW + "\nOnce.\n").encode())}
    assert "Already here" in (await forms.post("/ui/upload", data=data, files=files)).text


async def test_a_file_that_cannot_be_taken_says_why(forms: httpx.AsyncClient) -> None:
    csrf = field((await forms.get("/ui/upload")).text, "csrf")
    answer = await forms.post("/ui/upload", data={"csrf": csrf}, files={"file": ("empty.md", b"")})

    assert "Not taken" in answer.text and "There is no text in this file" in answer.text


async def test_signing_out_ends_it(forms: httpx.AsyncClient) -> None:
    kept = dict(forms.cookies)
    await forms.post("/ui/sign-out", data={"csrf": field((await forms.get("/")).text, "csrf")})
    forms.cookies.update(kept)
    assert (await forms.get("/ui/documents")).url.path == "/ui/sign-in"


# --- in a browser -----------------------------------------------------------------------------


@dataclass
class Watched:
    """A browser's page and what it complained about."""

    page: "Page"
    complaints: list[str]
    foreign: list[str]


@pytest.fixture
async def chromium() -> AsyncIterator["Browser"]:
    """A browser without a window."""
    if CHROMIUM is None:
        pytest.skip("NO BROWSER: the stories of the pages were not driven in one (apt: chromium)")
    api = pytest.importorskip("playwright.async_api", reason="NO PLAYWRIGHT: pip install .[dev]")
    async with api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


async def watched(context: "BrowserContext", door: Door) -> Watched:
    """A page whose console and requests are noted."""
    seen = Watched(await context.new_page(), [], [])

    def note(message: Any) -> None:
        if message.type in {"error", "warning"}:
            seen.complaints.append(message.text)

    def request(sent: Any) -> None:
        if not sent.url.startswith((door.url, "blob:", "data:")):
            seen.foreign.append(sent.url)

    seen.page.on("console", note)
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("request", request)
    return seen


@pytest.fixture
async def window(
    chromium: "Browser", door: Door, forms: httpx.AsyncClient
) -> AsyncIterator[Watched]:
    """A signed-in browser window; at the end it must have complained about nothing."""
    context = await chromium.new_context(viewport=SIZES["desk"])  # type: ignore[arg-type]
    cookie = {"name": "kb_session", "value": forms.cookies["kb_session"], "url": door.url}
    await context.add_cookies([cookie])  # type: ignore[list-item]
    seen = await watched(context, door)
    yield seen
    assert seen.complaints == []
    assert seen.foreign == []
    await context.close()


async def test_one_signs_in_with_the_keyboard_alone(
    chromium: "Browser", door: Door, forms: httpx.AsyncClient
) -> None:
    context = await chromium.new_context()
    seen = await watched(context, door)
    await seen.page.goto(f"{door.url}/ui/documents")
    await seen.page.keyboard.type("admin")
    await seen.page.keyboard.press("Tab")
    await seen.page.keyboard.type(door.password)
    await seen.page.keyboard.press("Enter")
    await seen.page.wait_for_url("**/ui/documents")
    await seen.page.keyboard.press("/")
    await seen.page.wait_for_url(f"{door.url}/")
    assert seen.complaints == []
    await context.close()


async def test_an_upload_shows_its_stages_and_is_found_and_highlighted(
    window: Watched, door: Door, tmp_path: Path
) -> None:
    file = tmp_path / "browser-act.md"
    file.write_text(LAW.replace("twenty", "thirty"))
    page = window.page
    await page.goto(f"{door.url}/ui/upload")
    await page.fill("input[name=project]", "browser")
    await page.set_input_files("#files", [file])
    row = page.locator(".row", has_text="browser-act.md")
    await row.locator(".chip.good").wait_for(timeout=90_000)
    assert "passage" in await row.inner_text()
    await page.reload()
    await page.locator(".row", has_text="browser-act.md").locator(".chip.good").wait_for()

    await page.goto(f"{door.url}/")
    await page.fill("input[name=project]", "browser")
    await page.fill("#q", "maximum fine")
    await page.keyboard.press("Enter")
    await page.locator(".card mark").first.wait_for()
    assert "q=maximum" in page.url
    await page.locator(".card .actions a").first.click()
    await page.locator(".passage, .prose mark").first.wait_for()
    shown = page.locator("#passage").first
    assert await shown.evaluate("e => { const r = e.getBoundingClientRect();"
                                " return r.top >= 0 && r.top < innerHeight }")  # fmt: skip
    assert "thirty million" in (await page.locator(".passage").all_inner_texts())[-1]


async def test_the_list_of_documents_changes_by_itself(
    window: Watched, door: Door, forms: httpx.AsyncClient
) -> None:
    page = window.page
    await page.goto(f"{door.url}/ui/documents?project=live")
    await page.locator(".empty").wait_for()
    await page.locator(".live.on").wait_for()
    await put(forms, "live.md", LAW.replace("twenty", "forty"), project="live")
    await page.locator("tbody .chip.good").wait_for(timeout=20_000)
    assert await page.locator("progress").count() == 0


async def test_a_document_waits_for_a_person_who_releases_it(
    window: Watched, door: Door, forms: httpx.AsyncClient
) -> None:
    path = await put(forms, "device.md", DOUBTFUL, project="review")
    page = window.page
    await page.goto(door.url + path)
    assert await page.locator(".review table tbody tr").count() > 0
    assert "technician" not in await page.inner_text("main")
    # Once for the text as it was read, once for the text that would be indexed.
    for subject, told in (("parsed", "read from the file"), ("converted", "would be indexed")):
        await page.goto(door.url + path)
        await page.locator(".timeline", has_text=f"{subject} text: quarantine").wait_for(
            timeout=60_000
        )
        await page.goto(f"{door.url}/ui/review?project=review")
        await page.click("tbody th a")
        assert told in await page.inner_text(".case-head")
        marked = await page.locator(".raw-text mark").all_inner_texts()
        assert any("all previous instructions" in words for words in marked)
        assert "technician opens" in await page.inner_text(".raw-text")
        # The number beside the marked words leads to the rule's reason, and back.
        await page.locator(".raw-text mark .ref").first.press("Enter")
        assert await page.locator(".finding:target").inner_text() != ""
        await page.locator(".finding:target a.ref").press("Enter")
        assert await page.locator(".raw-text mark:target").count() == 1
        await page.fill("textarea[name=reason]", "A manual, and no attack")
        await page.locator("button[value=release]").press("Enter")
        await page.wait_for_url(door.url + path)
    await page.locator(".facts .chip.good").wait_for(timeout=60_000)
    assert await page.title() == "Settings of the device · citelog"
    assert "technician" in await page.inner_text(".body")
    assert "A manual, and no attack" in await page.inner_text(".timeline")
    assert "owned" not in await page.title()


async def test_a_document_is_rejected_by_plain_forms_and_by_one_person_only(
    forms: httpx.AsyncClient,
) -> None:
    path = await put(forms, "again.md", DOUBTFUL + "\nAgain.\n", project="reject")
    waiting = path.replace("documents", "review")
    assert waiting in (await forms.get("/ui/review?project=reject")).text
    page = (await forms.get(waiting)).text
    assert "<script>document.title" not in page and "<mark" in page
    data = {"csrf": field(page, "csrf"), "text_sha256": field(page, "text_sha256")}
    data |= {"decision": "reject", "reason": "An attack"}
    none = await forms.post(waiting, data=data | {"reason": "  "})
    other = await forms.post(waiting, data=data | {"text_sha256": "0" * 64})
    assert (none.status_code, other.status_code) == (422, 409)
    done = await forms.post(waiting, data=data)
    assert done.url.path == path
    assert (await forms.post(waiting, data=data)).status_code == 409
    assert (await forms.get(waiting)).status_code == 409

    async def rejected() -> bool:
        return "Somebody rejected this document" in (await forms.get(path)).text

    await eventually(rejected, deadline=30, every=0.2)
    assert (
        "Nothing waits in the project reject" in (await forms.get("/ui/review?project=reject")).text
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
async def test_no_page_has_a_serious_fault_for_those_who_see_or_hear_little(
    chromium: "Browser", door: Door, forms: httpx.AsyncClient, theme: Any, size: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.async_playwright", reason="NO AXE: pip install .[dev]"
    )
    path = await put(forms, "seen.md", LAW.replace("twenty", "fifty"), project="seen")
    doubtful = await put(forms, "seen-waits.md", DOUBTFUL + "\nSeen.\n", project="seen")
    line = await put_line(forms, f"seen-{theme}-{size}")
    context = await chromium.new_context(viewport=SIZES[size], color_scheme=theme)  # type: ignore[arg-type]
    seen = await watched(context, door)
    page = seen.page
    await page.goto(f"{door.url}/ui/sign-in")
    faults = [f"sign-in {f}" for f in await _faults(axe, page)]
    cookie = {"name": "kb_session", "value": forms.cookies["kb_session"], "url": door.url}
    await context.add_cookies([cookie])  # type: ignore[list-item]
    for where in (
        "/", "/?q=fine&project=seen", "/?q=zzzz&project=none", "/ui/documents", "/ui/upload",
        "/ui/password", "/ui/nothing", path, f"{path}?start=30&end=200", doubtful, "/ui/review",
        doubtful.replace("documents", "review"), "/ui/review?project=none", line,
        f"{line}/history", f"{line}/diff", f"{line}?as_of=2016-01-01", f"{line}/diff?from={line}",
    ):  # fmt: skip
        await page.goto(door.url + where)
        faults += [f"{where} {fault}" for fault in await _faults(axe, page)]
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, where
    await context.close()
    assert faults == []
    assert seen.foreign == []


async def _faults(axe: Any, page: "Page") -> list[str]:
    response = (await axe.Axe().run(page)).response
    assert len(response["passes"]) > 10  # it did look
    return [
        f"{v['id']}: {n['target']} {n['failureSummary']}"
        for v in response["violations"]
        if v["impact"] in {"serious", "critical"}
        for n in v["nodes"]
    ]
