"""The pages of a document over time: history, what changed, as of a day."""

import re
from datetime import UTC, datetime

import httpx
import pytest

from contracts.diff import Piece
from contracts.events import Window
from kernel.reflow import reflow
from services.ui import changes
from tests.unit.ui.fake import Fake, change, hexid, line, version

OLD = """# Закон

## Глава 1

### Член 1

Глобата е до 20 лева за физически лица.

### Член 2

Този член остава какъвто е, и след него няма друго в закона.

### Член 9

Отменен изцяло от първи януари нататък.
"""
NEW = (
    OLD.replace("20", "50")
    .replace("Член 2", "Член 3")
    .replace("Член 9\n\nОтменен изцяло от първи януари нататък.", "Член 4\n\nНещо ново & добро.")
)
EVIL = "<script>alert('evil')</script>"
FIRST, SECOND = (datetime(year, 1, 1, tzinfo=UTC) for year in (2010, 2015))
DOCUMENT = hexid("d")
VERSIONS = (
    version(
        "old.md", version_id=hexid("v1"), document_id=DOCUMENT, current=False,
        valid_from=FIRST, valid_until=SECOND, windows=[
            Window(version_id=hexid("v1"), valid_from=FIRST, valid_until=SECOND)
        ],
    ),
    version(
        "new.md", version_id=hexid("v2"), document_id=DOCUMENT, valid_from=SECOND,
        windows=[Window(version_id=hexid("v2"), valid_from=SECOND)],
    ),
)  # fmt: skip
BASE = f"/ui/documents/{DOCUMENT}"


@pytest.fixture
def law(fake: Fake) -> Fake:
    """A document with two versions."""
    fake.versions = list(VERSIONS)
    fake.diff = change(OLD.encode(), NEW.encode(), VERSIONS)
    fake.history = line(*VERSIONS)
    return fake


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def section(page: str, number: int) -> str:
    return page.split(f'id="c{number}"', 1)[1].split("</section>", 1)[0]


# --- what changed -----------------------------------------------------------------------------


async def test_a_diff_has_each_changed_section_with_its_words_marked(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get(f"{BASE}/diff")).text
    first = section(page, 1)
    assert "Глава 1" in first and ">Член 1</h2>" in first
    assert '<div class="text old">Глобата е до <del>20</del> лева за физически лица.' in first
    assert '<div class="text new">Глобата е до <ins>50</ins> лева за физически лица.' in first
    assert "до <del>20</del><ins>50</ins> лева" in first
    assert ">Член <del>2</del><ins>3</ins></h2>" in section(page, 2)
    assert "Нещо ново &amp; добро." in page
    assert "1 changed 1 added 1 removed 1 renamed 2 same" in plain(page)


async def test_a_section_leads_to_its_place_in_both_versions(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = section((await person.get(f"{BASE}/diff")).text, 1)
    links = re.findall(r'href="(/ui/documents/[^"]+)#passage"', page)
    start = len(OLD.encode()[: OLD.encode().index("### Член 1".encode())])
    assert f"/ui/documents/{hexid('v1')}?start={start}&amp;end=" in links[0]
    assert links[1].startswith(f"/ui/documents/{hexid('v2')}?start={start}&amp;")


async def test_the_sides_that_were_asked_for_are_asked_for(
    person: httpx.AsyncClient, law: Fake
) -> None:
    await person.get(f"{BASE}/diff?from=2012-01-01&to={hexid('v2')}")
    assert law.last(f"/documents/{DOCUMENT}/diff").query == f"from=2012-01-01&to={hexid('v2')}"
    await person.get(f"{BASE}/diff?from=&to=")
    assert law.last(f"/documents/{DOCUMENT}/diff").query == ""


async def test_the_versions_that_are_compared_are_chosen_in_the_form(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get(f"{BASE}/diff")).text
    chosen = re.findall(r'<option value="(\w+)" selected>', page)
    assert chosen == [hexid("v1"), hexid("v2")]
    assert f"{BASE}/diff?from={hexid('v2')}&amp;to={hexid('v1')}" in page


async def test_what_cannot_be_compared_is_said_above_the_form(
    person: httpx.AsyncClient, law: Fake
) -> None:
    law.refusals[f"/documents/{DOCUMENT}/diff"] = ("not-valid-then", 404)
    answer = await person.get(f"{BASE}/diff?from=1999-01-01&to=2001-01-01")
    assert answer.status_code == 422
    assert "Nothing of this document was valid on that day." in answer.text
    assert 'name="from" value="1999-01-01"' in answer.text


async def test_another_failure_is_the_page_of_failures(
    person: httpx.AsyncClient, law: Fake
) -> None:
    law.refusals[f"/documents/{DOCUMENT}/diff"] = ("unavailable", 503)
    answer = await person.get(f"{BASE}/diff")
    assert answer.status_code == 503 and "A store is away" in answer.text


async def test_the_same_text_twice_is_said(person: httpx.AsyncClient, law: Fake) -> None:
    law.diff = change(OLD.encode(), OLD.encode())
    page = (await person.get(f"{BASE}/diff")).text
    assert "No section changed" in page and 'class="change ' not in page


async def test_a_hostile_text_is_text_in_a_diff(person: httpx.AsyncClient, law: Fake) -> None:
    old = f"# {EVIL}\n\n## [x](javascript:alert(1)) {EVIL}\n\n{EVIL} one \u202e two three four\n"
    new = old.replace("one", f'<img src=x onerror="{EVIL}">').replace("(1)", "(2)")
    law.diff = change(old.encode(), new.encode())
    page = (await person.get(f"{BASE}/diff")).text
    assert "<script>alert" not in page and "<img" not in page
    assert 'href="javascript:' not in page and "\u202e" not in page
    assert "&lt;script&gt;" in page and "⟦U+202E⟧" in page


async def test_lines_that_are_left_out_are_a_gap(person: httpx.AsyncClient, law: Fake) -> None:
    many = "\n\n".join(f"Sentence {n} of it." for n in range(9))
    law.diff = change(f"# A\n\n{many}\n\nold\n".encode(), f"# A\n\n{many}\n\nnew\n".encode())
    page = (await person.get(f"{BASE}/diff")).text
    assert "… 152 B the same …" in page
    assert '<div class="line removed">' in page and '<div class="line added">' in page


async def test_only_ids_reach_the_search(person: httpx.AsyncClient, law: Fake) -> None:
    for page in ("diff", "history"):
        answer = await person.get(f"/ui/documents/..%2F..%2Fmetrics/{page}")
        assert answer.status_code == 404
    assert not [s for s in law.seen if "metrics" in s.path]


@pytest.mark.parametrize("page", ["diff", "history"])
async def test_one_signs_in_first(site: str, law: Fake, page: str) -> None:
    async with httpx.AsyncClient(base_url=site) as stranger:
        answer = await stranger.get(f"{BASE}/{page}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/ui/sign-in?next=")


# --- history ----------------------------------------------------------------------------------


async def test_a_history_tells_both_times_why_by_whom_and_what_changed(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get(f"{BASE}/history")).text
    new, old = page.split("<tbody>")[1].split("</tr>")[:2]
    assert "Valid since" in plain(new) and "current" in plain(new) and "New version" in plain(new)
    assert "2 changed" in plain(new) and "1 added" in plain(new) and "same" not in plain(new)
    assert f"{BASE}/diff?from={hexid('v1')}&amp;to={hexid('v2')}" in new
    assert "actor:7 · upload" in new
    assert "the first" in plain(old) and "First version" in plain(old)
    assert re.findall(r'name="(\w+)" value="(\w+)"[^>]* checked', page) == [
        ("to", hexid("v2")), ("from", hexid("v1")),
    ]  # fmt: skip


async def test_a_version_that_was_never_valid_says_so(person: httpx.AsyncClient, law: Fake) -> None:
    entry = law.history.entries[0].model_copy(
        update={"valid_from": None, "recorded_at": None, "body_bytes": None, "status": "review",
                "current": False, "changes": None}
    )  # fmt: skip
    law.history = law.history.model_copy(update={"entries": [*law.history.entries, entry]})
    page = plain((await person.get(f"{BASE}/history")).text)
    assert "never valid In review" in page


async def test_a_single_version_has_nothing_to_compare(
    person: httpx.AsyncClient, law: Fake
) -> None:
    law.history = line(VERSIONS[0])
    page = (await person.get(f"{BASE}/history")).text
    assert 'type="radio"' not in page and "Compare the two" not in page


# --- as of a day ------------------------------------------------------------------------------


async def test_a_document_as_of_a_day_is_the_version_of_that_day(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get(f"{BASE}?as_of=2012-05-06")).text
    assert "This is what was valid on 2012-05-06." in page
    asked = [s.query for s in law.seen if s.path == f"/documents/{DOCUMENT}"]
    assert asked == ["", "as_of=2012-05-06"]
    assert 'name="as_of" value="2012-05-06"' in page


async def test_a_day_without_a_version_is_said_above_the_present_one(
    person: httpx.AsyncClient, law: Fake
) -> None:
    law.as_of_refusal = ("not-valid-then", 404)
    answer = await person.get(f"{BASE}?as_of=1999-05-06")
    assert answer.status_code == 200
    assert "Nothing of this document was valid on that day." in answer.text


async def test_a_document_leads_to_its_history_and_to_what_changed(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get(BASE)).text
    assert f'href="{BASE}/history"' in page
    assert f'href="/ui/documents/{hexid("v2")}/diff"' in page
    assert f'href="/ui/documents/{hexid("v1")}/diff"' not in page


async def test_the_list_as_of_a_day_says_how_much_was_valid_and_when(
    person: httpx.AsyncClient, law: Fake
) -> None:
    page = (await person.get("/ui/documents?as_of=2012-05-06")).text
    assert law.last("/documents").query == "limit=50&as_of=2012-05-06"
    assert "2 documents were valid on 2012-05-06" in page
    assert "Was valid" in plain(page)
    assert 'hx-get="/ui/documents?as_of=2012-05-06"' in page


# --- pieces -----------------------------------------------------------------------------------


def test_blanks_at_the_edge_of_a_mark_are_not_struck() -> None:
    pieces = [Piece(kind="same", text="a"), Piece(kind="removed", text=" b\n"),
              Piece(kind="added", text=" ")]  # fmt: skip
    assert changes.marked(pieces, {"same", "removed", "added"}) == "a <del>b</del> <ins> </ins>"


def test_a_paragraph_is_shown_on_one_line() -> None:
    assert changes.marked([Piece(kind="same", text="a\nb\n\n- c\n- d")], {"same"}) == reflow(
        "a\nb\n\n- c\n- d"
    )
