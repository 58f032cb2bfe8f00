"""An erasure on a whole stack: in no file, table or answer anything is left; the rest stays."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from contracts.http import Accepted
from kernel.testing_wait import eventually
from tests.e2e.test_line import LAW, ingest, query, upload
from tests.e2e.test_scanner_line import ATTACK, DOUBTFUL, docx, waiting
from tests.stack import Stack
from tests.traces import Forms, forms_of, in_bytes, in_files, in_tables

PLACES = (
    "title", "heading", "body", "comment", "later", "file", "key", "inner", "innername", "refused",
    "doubt", "stopped", "broken", "twice", "folder", "dropped", "blocked", "reason", "word",
)  # fmt: skip
WORDS = {place: (f"qzk{place}x", f"жщю{n:02}ъёз") for n, place in enumerate(PLACES)}
"""Place → a word in Latin and one in Cyrillic letters that stand nowhere else."""


def both(place: str) -> str:
    return " ".join(WORDS[place])


def law(*, later: str = "") -> str:
    """A law with words in its title, a heading, its text and a comment that nobody sees."""
    return (
        f"# Act {both('title')}\n\n## Chapter {both('heading')}\n\n<!-- {both('comment')} -->\n\n"
        f"The register of {both('body')} is open on Mondays and the clerk of the court answers by "
        f"letter within a month after it was asked. {later}\n"
    )


def letter() -> bytes:
    """A mail with a file that is taken in and one that is left out."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Rules", "a@x.example", "b@x.example"
    mail.set_content("Dear colleagues, the rules of our association are attached to this letter.\n")
    inner = f"# Rules\n\nThe members of {both('inner')} meet in the house of the town each May.\n"
    mail.add_attachment(
        inner.encode(), maintype="application", subtype="octet-stream",
        filename=f"{both('innername')}.md",
    )  # fmt: skip
    mail.add_attachment(
        b"MZ\x90\x00" + bytes(300), maintype="application", subtype="octet-stream",
        filename=f"{both('refused')}.exe",
    )  # fmt: skip
    return mail.as_bytes()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("erasure")
    temporary = folder / "data" / "tmp"  # so that what is left there is found, too
    temporary.mkdir(parents=True)
    quick = {"KB_DROPZONE_QUIET": "0.1", "KB_DROPZONE_INTERVAL": "0.1"}
    made = Stack(
        folder, "hashed", TMPDIR=str(temporary), KB_SCANNER_LEARNED="off", OMP_NUM_THREADS="1",
        **quick,
    )  # fmt: skip
    made.kb("up", "--detach")
    yield made
    made.kb("down")


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with stack.client() as made:
        yield made


ALL = {word: forms_of(word) for pair in WORDS.values() for word in pair}
STARTS = tuple(f for start in ("qzk", "жщю") for f in forms_of(start).folded)
"""How each of the words begins: what has none of these is looked at once."""


def words_in(data: bytes, *, packed: bool) -> set[str]:
    """The words that stand there; `packed`: also inside zip members and deflate streams."""
    low = data.lower()
    if any(start in low for start in STARTS):
        return {word for word, forms in ALL.items() if forms.search(data)}
    if packed and in_bytes(data, Forms(STARTS, ())):
        return {word for word, forms in ALL.items() if in_bytes(data, forms)}
    return set()


def written(root: Path) -> dict[str, list[str]]:
    """Word → files and folders below `root` that hold it, in their names too."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        packed = name.startswith(("blobs", "dropzone", "tmp"))
        for word in words_in(name.encode(), packed=False) | words_in(data, packed=packed):
            found.setdefault(word, []).append(name)
    return found


async def told(dsn: str) -> dict[str, list[str]]:
    """Word → tables that hold it in a row, large values unpacked."""
    found: dict[str, list[str]] = {}
    connection: Any = await asyncpg.connect(dsn)
    for table in await connection.fetch(
        """SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
            WHERE schemaname <> 'information_schema' AND tablename <> 'pg_statistic'"""
    ):
        rows = await connection.fetch(f"SELECT t::text AS line FROM {table['name']} t")
        for word in words_in("\n".join(r["line"] for r in rows).encode(), packed=False):
            found.setdefault(word, []).append(str(table["name"]))
    await connection.execute("CHECKPOINT")  # what is in memory goes to the files
    await connection.close()
    return found


async def left(stack: Stack) -> dict[str, list[str]]:
    """Word → every place of the stack where it is."""
    tables = await told(stack.owner)
    files = await asyncio.to_thread(written, stack.data.root)
    return {w: tables.get(w, []) + files.get(w, []) for w in ALL if w in tables or w in files}


async def erased(client: httpx.AsyncClient, **asked: str) -> dict[str, Any]:
    """The receipt, when it is complete."""
    reply = await client.post("/erasures", json=asked)
    assert reply.status_code == 202, reply.text

    async def complete() -> dict[str, Any]:
        receipt = (await client.get(f"/erasures/{reply.json()['id']}")).json()
        assert receipt["complete"], receipt
        return dict(receipt)

    return await eventually(complete, deadline=90, every=0.2)


async def dropped(client: httpx.AsyncClient, stack: Stack) -> str:
    """A file that was put into the drop-zone, in a folder with a name; id of its document."""
    name = f"{both('file')}-z.md"
    folder = stack.data.dropzone / "zone" / both("folder")
    folder.mkdir(parents=True)
    (folder / name).write_text(f"# Zone\n\nThe house of {both('dropped')} is open on Mondays.\n")

    async def settled() -> str:
        done = stack.data.dropzone / "done" / "zone" / both("folder") / name
        page = (await client.get("/documents", params={"project": "zone"})).json()["documents"]
        assert done.exists(), page
        return str(page[0]["document_id"])

    return await eventually(settled, deadline=60, every=0.2)


async def documents(client: httpx.AsyncClient, stack: Stack) -> dict[str, str]:
    """Documents in every state, by what they are: id of each."""
    key, name = f"archive/{both('key')}", f"{both('file')}.md"
    line = await ingest(client, name, law(), source=key, valid_from="2024-01-01")
    later = law(later=f"Since then it is {both('later')}.")
    await ingest(client, name, later, source=key, valid_from="2025-01-01")
    mail = await ingest(client, "letter.eml", letter(), source=f"mail/{both('key')}")
    word = await ingest(
        client,
        "w.docx",
        docx(f"The office of {both('word')} opens in May and closes in June. " * 3),
    )
    doubt = await waiting(
        client, f"{both('file')}.txt", DOUBTFUL.format(word=both("doubt")).encode()
    )
    refused = await waiting(
        client, "reason.txt", DOUBTFUL.format(word=both("twice") + " again").encode()
    )
    decision = {"decision": "reject", "reason": both("reason")}
    reply = await client.post(f"/review/{refused.version_id}", json=decision)
    assert reply.status_code == 200, reply.text
    stopped = await waiting(client, "s.txt", DOUBTFUL.format(word=both("stopped")).encode())
    await client.post(f"/jobs/{stopped.job_id}/cancel")
    broken = await upload(client, "b.pdf", f"%PDF-1.7\n{both('broken')}".encode() + bytes(99))
    blocked = await upload(
        client, f"{both('blocked')}.txt", f"# Notes\n\n{ATTACK.format(word=both('blocked'))}"
    )
    found = {
        "line": line, "mail": mail, "word": word, "doubt": doubt, "refused": refused,
        "stopped": stopped, "broken": broken, "blocked": blocked,
    }  # fmt: skip
    for one, status in (("stopped", "failed"), ("broken", "failed"), ("blocked", "blocked")):
        await eventually(partial(_is, client, found[one], status), deadline=60, every=0.2)
    await eventually(lambda: _has_children(client, mail), deadline=60, every=0.2)
    ids = {what: accepted.document_id for what, accepted in found.items()}
    return ids | {"zone": await dropped(client, stack)}


async def _is(client: httpx.AsyncClient, accepted: Accepted, status: str) -> bool:
    view = (await client.get(f"/documents/{accepted.document_id}")).json()
    assert view["status"] == status, view
    return True


async def _has_children(client: httpx.AsyncClient, accepted: Accepted) -> bool:
    view = (await client.get(f"/documents/{accepted.document_id}")).json()
    assert [a["status"] for a in view["attachments"]] == ["indexed"], view
    return True


async def unharmed(client: httpx.AsyncClient, kept: Accepted) -> None:
    """The document beside the erased ones is as it was."""
    hit = (await query(client, "maximum fine for a data breach"))[0]
    assert hit["document_id"] == kept.document_id
    assert "twenty million euro" in (await client.get(f"/documents/{kept.document_id}/body")).text


def erase(stack: Stack, *words: str) -> dict[str, Any]:
    return dict(json.loads(stack.kb("erase", *words, "--yes", "--json", "--no-scrub")))


async def test_of_what_is_erased_nothing_is_left(client: httpx.AsyncClient, stack: Stack) -> None:
    kept = await ingest(client, "act.md", LAW)
    ids = await documents(client, stack)
    twice = f"# Twice\n\nThe court of {both('twice')} sits in the old house on Fridays.\n"
    for key in ("one", "two"):
        await ingest(client, "t.md", twice, source=key)
    before = await left(stack)
    assert set(before) == {w for pair in WORDS.values() for w in pair}, "the control"

    plan = json.loads(stack.kb("erase", "document", ids["mail"], "--dry-run", "--json"))
    assert (plan["versions"], len(plan["documents"])) == (2, 2)
    receipts = {"mail": erase(stack, "document", ids["mail"])}
    for what, id_ in ids.items():
        receipts.setdefault(what, await erased(client, document=id_))
    receipts["twice"] = await erased(client, source=hashlib.sha256(twice.encode()).hexdigest())
    assert {w: len(r["versions"]) for w, r in receipts.items()} == dict.fromkeys(receipts, 1) | {
        "line": 2, "mail": 2, "twice": 2,
    }  # fmt: skip
    assert receipts["twice"]["removed"]["originals"] == 1
    assert receipts["zone"]["removed"]["dropped-files"] == 1
    for receipt in receipts.values():
        assert (receipt["files"], receipt["open"]) == ("open", {})
    assert receipts["line"]["removed"]["passages"] == receipts["line"]["removed"]["vectors"] == 2

    stack.kb("scrub")
    again = (await client.get(f"/erasures/{ids['line']}")).json()
    assert again["files"] == "clean"
    assert await left(stack) == {}
    await unharmed(client, kept)

    stack.kb("rebuild", "--all-projects")
    assert await left(stack) == {}
    await unharmed(client, kept)
    for id_ in ids.values():
        journal = await client.get(f"/documents/{id_}/journal")
        assert journal.status_code == 200
        assert (await client.get(f"/documents/{id_}/body")).status_code in (404, 410)
    listed = (await client.get("/documents", params={"limit": 500})).json()["documents"]
    assert {d["name"] for d in listed} == {"act.md", "(erased)"}

    stack.kb("down")
    assert written(stack.data.root) == {}
    stack.kb("up", "--detach")
    async with stack.client() as after:
        await eventually(lambda: _still(after, kept), deadline=60)


async def _still(client: httpx.AsyncClient, kept: Accepted) -> bool:
    await unharmed(client, kept)
    return True


async def test_bytes_that_another_document_has_stay_and_the_receipt_says_so(
    client: httpx.AsyncClient, stack: Stack
) -> None:
    text = "# Shared\n\nThe library of the town lends its books for four weeks to everybody.\n"
    mine = await ingest(client, "s.md", text, project="mine")
    other = await ingest(client, "s.md", text, project="other")
    receipt = await erased(client, document=mine.document_id)
    assert receipt["removed"]["originals"] == 0
    # The body is the very text that was sent, so it is the same blob.
    assert receipt["kept"] | {"other": 0} == {
        "originals": 1, "parses": 1, "other": 0, "cached-vectors": 1,
    }  # fmt: skip
    assert await query(client, "library of the town", project="mine") == []
    hits = await query(client, "library of the town", project="other")
    assert hits[0]["document_id"] == other.document_id
    last = await erased(client, source=other.source_id, project="other")
    assert (last["kept"], last["removed"]["originals"]) == ({}, 1)


async def test_what_a_service_that_is_down_owes_is_open_until_it_is_up(
    client: httpx.AsyncClient, stack: Stack
) -> None:
    gone = await ingest(client, "o.md", "# Open\n\nThe mill of the village grinds on Saturdays.\n")
    connection: Any = await asyncpg.connect(stack.owner)
    lock = connection.transaction()
    await lock.start()
    await connection.execute("LOCK TABLE read.chunk IN ACCESS EXCLUSIVE MODE")
    try:
        words = ("document", gone.document_id, "--no-wait")
        receipt = erase(stack, *words)
        assert (receipt["complete"], receipt["open"]) == (False, {"index": 1})
    finally:
        await lock.rollback()
        await connection.close()

    async def complete() -> bool:
        reply = await client.get(f"/erasures/{receipt['id']}")
        assert reply.json()["complete"], reply.text
        return True

    await eventually(complete, deadline=60, every=0.2)


def test_a_person_is_nobody_after_an_erasure(stack: Stack, tmp_path: Path) -> None:
    actor = asyncio.run(_person(stack))
    done = json.loads(stack.kb("erase", "person", "qzkperson", "--yes", "--json"))
    assert done == {"actor": actor, "changed": True, "sessions": 1}
    again = json.loads(stack.kb("erase", "person", actor, "--yes", "--json"))
    assert again["changed"] is False
    with pytest.raises(RuntimeError, match="last-admin"):
        stack.kb("erase", "person", "admin", "--yes")
    stack.kb("scrub")
    forms = forms_of("qzkperson")
    assert asyncio.run(in_tables(stack.owner, forms)) + in_files(stack.data.root, forms) == []


async def _person(stack: Stack) -> str:
    connection: Any = await asyncpg.connect(stack.owner)
    id_ = await connection.fetchval(
        """WITH one AS (INSERT INTO auth.account (name, password_hash, role)
                        VALUES ('qzkperson', 'x', 'editor') RETURNING actor_id)
           INSERT INTO auth.session (token_hash, actor_id, csrf, expires_at)
           SELECT sha256('x'), actor_id, 'csrf', now() + interval '1 hour' FROM one
           RETURNING actor_id"""
    )
    await connection.close()
    return f"actor:{id_}"
