"""What the pages show, and what they do without scripts."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from contracts.http import ReviewPiece, Trust, VersionView
from kernel.fence import fence
from services.ui import pages, view
from services.ui.strings import english
from tests.unit.ui.conftest import csrf, value_of
from tests.unit.ui.fake import (
    BODY,
    FENCE,
    NOW,
    Fake,
    entry,
    exhibit,
    hexid,
    hit,
    note,
    span,
    version,
)

HTMX = {"hx-request": "true", "hx-request-type": "partial"}
EVIL = "<script>alert('evil')</script>"


def plain(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


# --- search -----------------------------------------------------------------------------------


async def test_a_question_reaches_the_search_with_its_options(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    await person.get("/?q=fine&as_of=2020-05-01&project=legal&historical=1")

    assert json.loads(fake.last("/query").body) == {
        "query": "fine",
        "top_k": 10,
        "as_of": "2020-05-01T23:59:59.999999Z",
        "include_historical": True,
        "project": "legal",
    }


async def test_a_hit_is_a_card_with_place_validity_and_deep_link(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.hits = [hit("Infringements", "higher.", path=("Chapter VIII", "Article 83"))]
    page = (await person.get("/?q=maximum+fine")).text
    start, end = span("Infringements", "higher.")

    assert f"/ui/documents/{version().version_id}?start={start}&amp;end={end}#passage" in page
    assert "Chapter VIII" in page and "Article 83" in page
    assert "Valid since" in page and "<mark>fines</mark>" in page
    assert "untrusted" not in page and "[General Data Protection" not in page


async def test_the_deep_link_of_a_card_highlights_exactly_that_passage(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.hits = [hit("the following provisions", "undertaking")]
    card = (await person.get("/?q=fine")).text
    link = re.search(r'href="(/ui/documents/[^"]+start=[^"]+)"', card)
    assert link
    page = (await person.get(link[1].replace("&amp;", "&"))).text

    marked = " ".join(re.findall(r"<mark>(.*?)</mark>", page, re.DOTALL))
    start, end = span("the following provisions", "undertaking")
    assert " ".join(marked.split()) == " ".join(BODY.encode()[start:end].decode().split())


async def test_a_past_version_is_shown_as_past(person: httpx.AsyncClient, fake: Fake) -> None:
    gone = datetime(2018, 5, 25, tzinfo=UTC)
    fake.hits = [hit("Infringements", valid_until=gone, valid_from=gone - timedelta(days=9))]
    page = (await person.get("/?q=x&historical=1")).text

    assert "Was valid" in page and "2018-05-25" in page


async def test_no_hit_says_what_to_do(person: httpx.AsyncClient) -> None:
    assert "turn on past versions" in (await person.get("/?q=zzz")).text
    assert (
        "Nothing may have been valid on 1990-01-01"
        in (await person.get("/?q=zzz&as_of=1990-01-01")).text
    )


async def test_an_empty_base_leads_to_the_upload(person: httpx.AsyncClient, fake: Fake) -> None:
    fake.versions = []
    for path in ("/", "/ui/documents"):
        assert 'href="/ui/upload"' in (await person.get(path)).text.partition('class="empty"')[2]


@pytest.mark.parametrize(
    "query",
    ["q=x&as_of=yesterday", "q=x&project=NO%20SUCH", f"q={'x' * 9000}", "q=x&as_of=2020-13-45"],
)
async def test_a_bad_option_is_explained_and_asks_nothing(
    person: httpx.AsyncClient, fake: Fake, query: str
) -> None:
    answer = await person.get(f"/?{query}")

    assert answer.status_code == 422
    assert "Something in the form is not valid" in answer.text
    assert not [s for s in fake.seen if s.path == "/query"]


async def test_htmx_gets_the_results_alone(person: httpx.AsyncClient, fake: Fake) -> None:
    fake.hits = [hit("Infringements")]
    part = await person.get("/?q=fine", headers=HTMX)

    assert part.text.count('class="card"') == 1
    assert "<html" not in part.text
    assert "HX-Request" in part.headers["vary"]


async def test_htmx_that_goes_back_in_history_gets_the_whole_page(
    person: httpx.AsyncClient,
) -> None:
    for more in ({"hx-request-type": "full"}, {"hx-history-restore-request": "true"}):
        assert "<html" in (await person.get("/?q=fine", headers={**HTMX, **more})).text


async def test_htmx_without_a_session_goes_to_the_sign_in_and_back(
    browser: httpx.AsyncClient,
) -> None:
    current = {"hx-current-url": "http://127.0.0.1/ui/documents?project=a"}
    answer = await browser.get("/ui/documents", headers={**HTMX, **current})

    assert answer.headers["hx-redirect"] == "/ui/sign-in?next=%2Fui%2Fdocuments%3Fproject%3Da"


async def test_more_passages_are_a_link_away(person: httpx.AsyncClient, fake: Fake) -> None:
    fake.hits = [hit("Infringements")] * 10
    page = (await person.get("/?q=fine&historical=1")).text
    link = re.search(r'href="(/\?q=fine[^"]+depth=30)"', page)
    assert link
    await person.get(link[1].replace("&amp;", "&"))
    asked = json.loads(fake.last("/query").body)
    assert (asked["top_k"], asked["include_historical"]) == (30, True)


async def test_a_part_of_citelog_that_is_down_is_explained(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.refusals = {"/query": ("unavailable", 503), "/documents": ("unavailable", 503)}
    for path in ("/?q=x", "/ui/documents"):
        answer = await person.get(path)
        assert answer.status_code == 503
        assert "Try again in a moment" in answer.text


# --- strangers' words -------------------------------------------------------------------------


async def test_names_and_texts_of_strangers_are_escaped_everywhere(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [
        version(title=EVIL, name=EVIL, source_key=EVIL, language="e<b>", parser=EVIL,
                error={"code": "x", "reason": EVIL}, status="failed", body_sha256=None),
    ]  # fmt: skip
    fake.hits = [hit("Infringements", path=(EVIL,), title=EVIL)]
    fake.entries = [entry(1, "DocumentReceived", 0, name=EVIL, size_bytes=1), entry(2, EVIL, 1)]
    for path in (
        "/ui/documents",
        f"/ui/documents/{version().version_id}",
        f"/?q={EVIL}",
        f"/?as_of={EVIL}",
    ):
        page = (await person.get(path)).text
        assert "<script>alert" not in page and "<b>" not in page


# --- documents --------------------------------------------------------------------------------


async def test_documents_are_listed_with_their_status(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [
        version(),
        version("b.pdf", title="Second", status="converting", chunk_count=None),
    ]
    page = (await person.get("/ui/documents")).text

    assert "Indexed" in page and "Converting" in page
    assert page.count("<progress") == 1
    assert 'hx-trigger="kb:changed from:body"' in page


async def test_documents_are_paged_and_filtered(person: httpx.AsyncClient, fake: Fake) -> None:
    fake.versions = [version(f"{n}.txt", project="legal") for n in range(60)]
    first = (await person.get("/ui/documents?project=legal")).text
    link = re.search(r'href="(/ui/documents\?[^"]*cursor=[^"]+)"', first)
    assert link
    second = (await person.get(link[1].replace("&amp;", "&"))).text

    assert (first.count("<tr id="), second.count("<tr id=")) == (50, 10)
    assert (
        "No documents in the project other"
        in (await person.get("/ui/documents?project=other")).text
    )


async def test_a_failed_document_says_why_and_what_to_do(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    error = {"code": "parse-timeout", "reason": "more than 120 s"}
    fake.versions = [version(status="failed", error=error, body_sha256=None)]
    page = (await person.get(f"/ui/documents/{version().version_id}")).text

    assert "Reading this file took too long." in page
    assert "parse-timeout" in page and "Upload a corrected file" in page


# --- one document -----------------------------------------------------------------------------


async def test_a_document_shows_text_outline_details_and_journal(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.entries = [
        entry(1, "DocumentReceived", 0, name="gdpr.html", size_bytes=534_221),
        entry(2, "ScanVerdict", 1, subject="parsed", verdict="clean"),
        entry(3, "SomethingNew", 2, anything=1),
    ]
    page = (await person.get(f"/ui/documents/{version().version_id}")).text

    assert '<h3 id="s128">Article 83</h3>' in page and 'href="#s128"' in page
    assert "gdpr.html, 534 kB" in page and "parsed text: clean" in page and "SomethingNew" in page
    assert version().source_id in page
    assert "<script>alert" not in page and "evil.example" not in page


@pytest.mark.parametrize(
    "query", ["start=5&end=99999999", "start=9&end=3", "start=-1&end=3", "start=a&end=b", "start=1",
              "start=9999999999999999&end=99999999999999999"]
)  # fmt: skip
async def test_a_passage_that_is_not_there_is_said(person: httpx.AsyncClient, query: str) -> None:
    answer = await person.get(f"/ui/documents/{version().version_id}?{query}")

    assert answer.status_code == 200
    assert "This version has no bytes" in answer.text
    assert "passage.pass" not in answer.text and 'id="passage"' not in answer.text


async def test_a_past_version_leads_to_the_current_one(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    old = version("old.html", document_id=version().document_id, current=False,
                  valid_until=NOW - timedelta(days=9))  # fmt: skip
    fake.versions = [old, version()]
    page = (await person.get(f"/ui/documents/{old.version_id}")).text

    assert "You are reading a past version" in page
    assert f'href="/ui/documents/{version().version_id}"' in page
    assert "Version 1 of 2" in plain(page) and "Version 2 of 2" in plain(page)


async def test_an_unknown_document_is_a_page_with_404(person: httpx.AsyncClient) -> None:
    for key in (hexid("nothing"), "..%2F..%2Frebuild", "x" * 200):
        answer = await person.get(f"/ui/documents/{key}")
        assert answer.status_code == 404
        assert "text/html" in answer.headers["content-type"]


async def test_a_document_under_way_has_no_text_yet_and_reloads_itself(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [version(status="converting", body_sha256=None, chunk_count=None)]
    page = (await person.get(f"/ui/documents/{version().version_id}")).text

    assert "still on its way" in page
    assert f'hx-trigger="kb:doc:{version().document_id} from:body"' in page
    assert not [s for s in fake.seen if s.path.endswith("/body")]


async def test_a_long_document_comes_in_parts(person: httpx.AsyncClient, fake: Fake) -> None:
    chapters = [f"## Chapter {n}\n\n{'Words of a law. ' * 400}\n\n" for n in range(80)]
    fake.body = "".join(chapters).encode()
    last = fake.body.index(b"## Chapter 79")
    first = await person.get(f"/ui/documents/{version().version_id}")
    deep = await person.get(f"/ui/documents/{version().version_id}?start={last}&end={last + 20}")

    assert len(first.content) < 300_000 and len(deep.content) < 300_000
    assert "Part 1 of" in first.text and 'id="passage"' not in first.text
    assert "Chapter 79</h2>" in deep.text and 'id="passage"' in deep.text
    assert re.search(rf'href="/ui/documents/\w+\?part=\d+#s{last}"', first.text)


async def test_the_markdown_is_given_as_text(person: httpx.AsyncClient) -> None:
    answer = await person.get(f"/ui/documents/{version().version_id}/markdown")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.content == BODY.encode()


# --- review -----------------------------------------------------------------------------------


async def test_a_quarantined_document_shows_findings_and_no_text(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [version(status="review", verdict="quarantine")]
    found = [
        {"rule": "override-en", "severity": "high", "count": 2, "byte_start": 0, "byte_end": 1}
    ]
    fake.entries = [
        entry(1, "ScanVerdict", 0, subject="parsed", verdict="quarantine", findings=found)
    ]
    page = (await person.get(f"/ui/documents/{version().version_id}")).text

    assert "what was read from the file" in page
    assert "override-en" in page and f'href="/ui/review/{version().version_id}"' in page
    assert "parsed text: quarantine; override-en" in page
    assert "Infringements" not in page
    assert not [s for s in fake.seen if s.path.endswith("/body")]


def waits(name: str, **changes: Any) -> VersionView:
    return version(name, status="review", title=name, scan=note(**changes))


async def test_what_waits_is_listed_with_its_worst_finding_and_counted(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [version(), waits("a.pdf", worst="high", score=0.9), waits("b.pdf")]
    page = (await person.get("/ui/review")).text

    assert page.count("<tr id=") == 2
    assert "0.90" in page and "0.62" in page and "override.en.ignore-previous" in page
    assert f'href="/ui/review/{hexid("a.pdf")}"' in page
    assert "2 documents wait" in page and ">2</span>" in page.partition("</nav>")[0]
    assert 'chip severity bad"' in page and 'hx-trigger="kb:changed from:body"' in page


async def test_what_waits_is_paged_and_filtered(person: httpx.AsyncClient, fake: Fake) -> None:
    fake.versions = [
        waits(
            f"{n}.pdf",
        )
        for n in range(60)
    ]
    first = (await person.get("/ui/review?project=default")).text
    link = re.search(r'href="(/ui/review\?[^"]*cursor=[^"]+)"', first)
    assert link
    second = (await person.get(link[1].replace("&amp;", "&"))).text
    part = await person.get("/ui/review", headers=HTMX)

    assert (first.count("<tr id="), second.count("<tr id=")) == (50, 10)
    assert (
        "Nothing waits in the project other" in (await person.get("/ui/review?project=other")).text
    )
    assert "<html" not in part.text and part.text.count("<tr id=") == 50


async def test_the_number_of_what_waits_is_on_every_page_and_asked_for_seldom(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.versions = [waits("a.pdf")]
    for path in ("/", "/ui/upload", f"/ui/documents/{hexid('a.pdf')}", "/ui/review"):
        assert ">1</span>" in (await person.get(path)).text.partition("</nav>")[0], path
    asked = [s for s in fake.seen if s.query == "status=review&limit=1"]
    assert len(asked) == 1


async def test_a_page_that_cannot_count_what_waits_is_shown_all_the_same(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.refusals = {"/documents": ("unavailable", 503)}
    page = await person.get("/ui/upload")
    assert page.status_code == 200 and 'href="/ui/review"' in page.text


async def test_findings_are_marked_in_the_text_with_the_rule_and_why(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    page = (await person.get(f"/ui/review/{version().version_id}")).text

    assert re.search(
        r'<mark class="medium" id="m1" title="It orders[^"]+"><a class="ref" href="#f1"[^>]*>1</a>'
        r"ignore all previous</mark> and go on",
        page,
    )
    assert "It orders a model to forget what it was told." in page
    assert "encoded as base64 › rot13" in page and "Ignore⟦U+202E⟧" in page
    assert "1.2 kB left out" in page and "3 times" in page
    assert "What a reader does not see" in page and ">comment</span>" in page
    assert "End &lt;b&gt;." in page and "<b>" not in page


async def test_nothing_of_a_stranger_is_html_on_the_page_of_a_review(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    one = exhibit().findings[0].model_copy(
        update=dict.fromkeys(("rule", "why", "before", "match", "after", "says"), EVIL)
        | {"decoded": [EVIL]}
    )  # fmt: skip
    pieces = [ReviewPiece(text=EVIL), ReviewPiece(text=EVIL, findings=[1])]
    text = exhibit().texts[0].model_copy(update={"pieces": pieces})
    fake.review = exhibit(name=EVIL, ruleset=EVIL, findings=[one], texts=[text])
    page = (await person.get(f"/ui/review/{version().version_id}")).text

    assert "<script>alert" not in page and page.count("&lt;script&gt;alert") > 8


async def test_overlapping_findings_and_those_without_a_place_are_shown(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    first, second = exhibit().findings
    lost = second.model_copy(update={"number": 3, "text": None, "match": "", "why": ""})
    pieces = [
        ReviewPiece(text="aa", findings=[1]),
        ReviewPiece(text="bb", findings=[1, 2]),
        ReviewPiece(text="cc", findings=[2]),
    ]
    texts = [exhibit().texts[0].model_copy(update={"pieces": pieces})]
    found = [first, second.model_copy(update={"text": 0}), lost]
    fake.review = exhibit(findings=found, texts=texts, left_out=4, rescan=True, lowered=True)
    page = (await person.get(f"/ui/review/{version().version_id}")).text

    evidence = page.partition('class="evidence"')[2]
    marks = re.findall(r'<mark class="(\w+)"(?: id="(m\d)")?', evidence)
    assert marks == [("medium", "m1"), ("high", "m2"), ("high", "")]
    assert "The place is not known" in page and 'href="#m3"' not in page
    assert "The rules of today have no such rule." in page and "And 4 findings more." in page
    assert "was taken out of the index" in page and "would have meant a block" in page


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_decision_reaches_the_scanner_with_the_person_and_the_text(
    person: httpx.AsyncClient, fake: Fake, decision: str
) -> None:
    key = version().version_id
    page = (await person.get(f"/ui/review/{key}")).text
    fields = {"csrf": await csrf(person), "text_sha256": value_of(page, "text_sha256")}
    fields |= {"decision": decision, "reason": " quoted\r\n text "}
    answer = await person.post(f"/ui/review/{key}", data=fields)
    seen = fake.last(f"/review/{key}")

    assert answer.headers["location"] == f"/ui/documents/{key}"
    sent = {"decision": decision, "reason": "quoted text", "text_sha256": "a" * 64}
    assert json.loads(seen.body) == sent
    assert seen.headers["x-kb-actor"].startswith("actor:")
    assert seen.headers["x-kb-role"] == "admin"


async def test_no_other_decision_is_passed_on(person: httpx.AsyncClient, fake: Fake) -> None:
    fields = {"csrf": await csrf(person), "decision": "delete", "reason": "x", "text_sha256": "a"}
    answer = await person.post(f"/ui/review/{version().version_id}", data=fields)

    assert answer.status_code == 422
    assert not [s for s in fake.seen if s.path.startswith("/review")]


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("not-in-review", 409, "Somebody may have decided already"),
        ("text-changed", 409, "Somebody changed the store"),
        ("text-missing", 410, "no longer stored"),
        ("text-differs", 409, "Another text of this document waits now"),
    ],
)
async def test_a_review_that_cannot_be_says_why(
    person: httpx.AsyncClient, fake: Fake, code: str, status: int, words: str
) -> None:
    key = version().version_id
    fake.refusals = {f"/review/{key}": (code, status)}
    fields = {"csrf": await csrf(person), "decision": "reject", "reason": "x", "text_sha256": "a"}
    for answer in (
        await person.get(f"/ui/review/{key}"),
        await person.post(f"/ui/review/{key}", data=fields),
    ):
        assert answer.status_code == status
        assert words in answer.text


# --- trust ------------------------------------------------------------------------------------


async def test_a_trusted_document_has_a_badge_and_says_who_trusted_it(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    trust = Trust(actor="actor:the-admin", at=NOW)
    scan = note(verdict="clean", bypassed=True, worst="high")
    fake.versions = [version(trusted=True, trust=trust, scan=scan), version("other.md")]
    found = [{"rule": "a.b", "severity": "high"}]
    fake.entries = [
        entry(1, "ScanVerdict", 0, subject="parsed", verdict="clean", bypassed=True, ruled="block",
              findings=found)
    ]  # fmt: skip
    listed = (await person.get("/ui/documents")).text
    page = (await person.get(f"/ui/documents/{version().version_id}")).text
    only = (await person.get("/ui/documents?trusted=true")).text

    assert listed.count("chip trust") == 1 and "chip trust" in page
    assert "actor:the-admin" in page and "worst finding: high" in page
    assert "parsed text: clean (trusted; the rules say block); a.b" in page
    assert (listed.count("<tr id="), only.count("<tr id=")) == (2, 1)
    assert "trusted=true" in fake.last("/documents").query


# --- upload -----------------------------------------------------------------------------------


async def test_a_form_without_scripts_uploads_every_file(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    files = [("file", ("Отчёт.txt", "текст".encode())), ("file", ("b.md", b"# b"))]
    fields = {"csrf": await csrf(person), "project": "legal", "valid_from": "2024-01-01"}
    answer = await person.post("/ui/upload", data=fields, files=files)
    sent = [s for s in fake.seen if s.method == "POST"]

    assert answer.status_code == 200
    assert len(sent) == 2 and answer.text.count('<li class="row">') == 3  # one is the template
    assert "Отчёт.txt".encode() in sent[0].body and "текст".encode() in sent[0].body
    assert b"legal" in sent[0].body and b"2024-01-01" in sent[0].body
    assert b"csrf" not in sent[0].body


async def test_one_refused_file_does_not_hide_the_others(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    fake.limit = 1000
    files = [("file", ("big.txt", b"x" * 5000)), ("file", ("small.txt", b"x"))]
    answer = await person.post("/ui/upload", data={"csrf": await csrf(person)}, files=files)

    assert "Not taken" in answer.text and "too-large" in answer.text
    assert f'href="/ui/documents/{version().version_id}?new"' in answer.text


async def test_a_document_of_a_moment_ago_is_waited_for(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    known, fake.versions = fake.versions, []
    asyncio.get_running_loop().call_later(0.3, fake.versions.extend, known)
    answer = await person.get(f"/ui/documents/{version().version_id}?new")

    assert answer.status_code == 200


async def test_a_form_that_would_fill_the_disk_is_refused_before_it_is_read(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}

    async def endless() -> AsyncIterator[bytes]:
        yield b"--x\r\n"

    unknown = await person.post("/ui/upload", headers=headers, content=endless())
    headers["content-length"] = str(10 << 30)
    host, port = str(person.base_url.host), int(person.base_url.port or 0)
    reader, writer = await asyncio.open_connection(host, port)
    cookie = f"Cookie: kb_session={person.cookies['kb_session']}\r\n"
    lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    writer.write(f"POST /ui/upload HTTP/1.1\r\nHost: {host}\r\n{cookie}{lines}\r\n".encode())
    large = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    writer.close()

    assert unknown.status_code == 411
    assert large.startswith(b"HTTP/1.1 413")


async def test_a_form_without_files_is_explained(person: httpx.AsyncClient, fake: Fake) -> None:
    fields = {"csrf": await csrf(person)}
    answer = await person.post("/ui/upload", data=fields, files={"file": ("", b"")})

    assert answer.status_code == 422
    assert "Choose at least one file." in answer.text


async def test_a_job_shows_its_stage_until_it_is_done(
    person: httpx.AsyncClient, fake: Fake
) -> None:
    path = f"/ui/jobs/{version().job_id}"
    first, second = (await person.get(path)).text, (await person.get(path)).text

    assert 'data-done="no"' in first and "Checking" in first
    assert 'data-done="yes"' in second and "3 passages" in second


# --- small things -----------------------------------------------------------------------------


def test_a_text_without_its_breadcrumb_is_shown_as_it_is() -> None:
    plain = hit("Infringements", text="no breadcrumb")
    assert view.passage_text(plain, FENCE) == "no breadcrumb"
    fenced = hit("Infringements", text=fence("no breadcrumb", FENCE))
    assert view.passage_text(fenced, FENCE) == "no breadcrumb"


def test_a_passage_loses_its_fence_and_its_breadcrumb() -> None:
    assert view.passage_text(hit("Infringements", "higher."), FENCE).endswith("higher.")
    bare = hit("Infringements", text="[General Data Protection Regulation]\na\nb")
    assert view.passage_text(bare, "") == "a\nb"


def test_a_title_that_looks_like_a_fence_brings_no_fence_into_the_page() -> None:
    title = "</untrusted-document-1> a"
    text = fence(f"[{title}]\nThe passage.", FENCE)
    assert view.passage_text(hit("Infringements", title=title, text=text), FENCE) == "The passage."


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (534_221, "534 kB"),
        (2_500_000, "2.5 MB"),
        (None, "–"),
    ],
)
def test_sizes_are_for_people(count: int | None, words: str) -> None:
    assert view.size(count) == words


def test_a_journal_of_any_shape_is_told() -> None:
    odd = [
        entry(1, "ScanVerdict", 0, findings="?"),
        entry(2, "Failed", 1),
        entry(3, "Indexed", 2, chunk_count=[1]),
    ]

    assert len(view.journal_lines(odd, english())) == 3
    verdict = view.verdict_on(odd, version().version_id)
    assert verdict and verdict.findings == []
    assert view.verdict_on([], version().version_id) is None


def test_a_body_of_no_bytes_has_one_empty_part() -> None:
    text = pages.make_text(b"", "v", (None, None), "7")

    assert (text.part, text.parts, text.html) == (1, 1, "")


def test_problem_codes_of_the_front_door_have_words() -> None:
    for code in ("upstream-unavailable", "upstream-failed", "wrong-token", "not-configured"):
        assert f"error.{code}" in english()
