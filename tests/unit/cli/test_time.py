"""`kb diff`, `kb history`, and what commands show as of a day."""

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response
from rich.console import Console

from cli.diff import show
from contracts.diff import DiffReply
from services.search.diff import compare
from tests.unit.cli.door import HEX, Door, open_door
from tests.unit.cli.test_commands import VERSION, Done, Kb, kb  # noqa: F401 - a fixture

OLD = """# Закон

## Член 1

Глобата е до 20 лева за физически лица.

## Член 2

Този член остава какъвто е, и след него няма друго.
"""
NEW = OLD.replace("20", "50").replace("Член 2", "Член 3")


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with open_door() as door:
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "test-key")
        yield door


def reply(old: str = OLD, new: str = NEW, title: str = "Закон") -> DiffReply:
    found = compare(old.encode(), new.encode())
    side: dict[str, Any] = {
        "document_id": HEX, "source_id": HEX * 2, "project": "default", "name": "zakon.md",
        "title": title, "body_sha256": "a" * 64, "body_bytes": 9,
        "received_at": "2026-01-01T00:00:00Z", "valid_until": None,
    }  # fmt: skip
    sides = [
        {"version_id": c * 32, "valid_from": f"{year}-01-01T00:00:00Z"}
        for c, year in (("1", 2010), ("2", 2015))
    ]
    return DiffReply.model_validate(
        {
            "old": side | sides[0] | {"valid_until": "2015-01-01T00:00:00Z"},
            "new": side | sides[1],
            "counts": found.counts, "sections": found.sections, "left_out": found.left_out,
        }
    )  # fmt: skip


def answer(model: Any) -> Response:
    return Response(model.model_dump_json(), media_type="application/json")


def page(*names: str, **fields: Any) -> Response:
    rows = [VERSION | {"document_id": n * 32, "source_key": "law"} | fields for n in names]
    return JSONResponse({"documents": rows, "next": None})


# -- diff --------------------------------------------------------------------------------------


def test_a_diff_names_sections_and_marks_words(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = answer(reply())
    lines = kb("diff", HEX).out.splitlines()
    assert door.seen == [("GET", f"/documents/{HEX}/diff", {})]
    assert lines[:3] == [
        f"--- Закон, 2010-01-01 to 2015-01-01  ({'1' * 32})",
        f"+++ Закон, 2015-01-01 to now  ({'2' * 32})",
        "1 changed, 1 renamed, 1 same",
    ]
    assert lines[4].startswith("~ changed  Закон > Член 1  bytes ")
    assert lines[5] == "  ~ Глобата е до [-20-]{+50+} лева за физически лица."
    assert lines[7].startswith("~ renamed  Закон > Член [-2-]{+3+}  bytes ")


def test_a_terminal_has_colour_and_no_marks(door: Door) -> None:
    file = io.StringIO()
    show(reply(), Console(file=file, force_terminal=True, width=60, color_system="standard"))
    shown = file.getvalue()
    assert "\x1b[9;31m20\x1b[0m\x1b[32m50\x1b[0m" in shown
    assert "[-" not in shown and "{+" not in shown


def test_without_colour_a_terminal_has_the_marks(door: Door) -> None:
    file = io.StringIO()
    show(reply(), Console(file=file, force_terminal=True, width=60, no_color=True))
    assert "[-20-]{+50+}" in file.getvalue() and "\x1b[31" not in file.getvalue()


def test_two_days_or_two_documents_are_asked_for(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = answer(reply())
    kb("diff", HEX, "--from", "2012-01-01", "--to", "2016-01-01", "--recorded-as-of", "2020-01-01")
    kb("diff", HEX, "f" * 64, "--unchanged", "--json")
    assert [query for _, _, query in door.seen] == [
        {"from": "2012-01-01", "to": "2016-01-01", "recorded_as_of": "2020-01-01"},
        {"from": HEX, "to": "f" * 64, "unchanged": "true"},
    ]


def test_two_versions_and_a_day_are_too_much(door: Door, kb: Kb) -> None:  # noqa: F811
    done = kb("diff", HEX, HEX, "--from", "2012-01-01")
    assert (done.code, done.err) == (1, "error: two versions or two days, not both\n")
    assert door.seen == []


def test_json_is_the_reply(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = answer(reply())
    assert json.loads(kb("diff", HEX, "--json").out) == json.loads(reply().model_dump_json())


def test_a_document_cannot_steer_the_terminal(door: Door, kb: Kb) -> None:  # noqa: F811
    bad = "# a\x1b[2J\u202e\n\nb\x1b]0;x\x07 [red]c[/red]\n"
    door.reply = answer(reply(bad, bad.replace("c", "d"), title="t\x1b[2J"))
    out = kb("diff", HEX).out
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
    assert "[red]" in out


def test_what_is_left_out_is_said(door: Door, kb: Kb) -> None:  # noqa: F811
    many = "\n\n".join(f"Sentence {n} of it." for n in range(9))
    found = reply(f"# A\n\n{many}\n\nold\n", f"# A\n\n{many}\n\nnew\n")
    door.reply = answer(found.model_copy(update={"left_out": 3}))
    out = kb("diff", HEX).out
    assert "… 152 bytes the same" in out and "and 3 sections more" in out
    assert "  - old\n  + new\n" in out


# -- what it is called -------------------------------------------------------------------------


def test_a_source_key_or_name_is_looked_up(door: Door, kb: Kb) -> None:  # noqa: F811
    door.replies["/documents?"] = door.replies["/documents"] = page("a", "a")
    door.reply = answer(reply())
    assert kb("diff", "laws/gg.md", "--project", "p").code == 0
    assert door.seen[0] == (
        "GET",
        "/documents",
        {"source": "laws/gg.md", "limit": "500", "project": "p"},
    )
    assert door.seen[1][1] == f"/documents/{'a' * 32}/diff"


def test_a_name_of_several_documents_is_refused(door: Door, kb: Kb) -> None:  # noqa: F811
    door.replies["/documents"] = page("a", "b")
    done = kb("history", "law.md")
    assert done.code == 1
    assert f"{'a' * 32} (default, law), {'b' * 32} (default, law)" in done.err


def test_a_file_stands_for_its_bytes(door: Door, kb: Kb, tmp_path: Path) -> None:  # noqa: F811
    door.replies["/documents"] = page()
    (tmp_path / "law.md").write_bytes(b"law")
    kb("history", "law.md", "--json")
    digest = hashlib.sha256(b"law").hexdigest()
    assert door.seen[-1][1] == f"/documents/{digest}/history"


def test_an_unknown_name_is_refused(door: Door, kb: Kb) -> None:  # noqa: F811
    door.replies["/documents"] = page()
    done = kb("diff", "nothing")
    assert done.err == "error: no document, source, name or file is called so: nothing\n"


# -- history -----------------------------------------------------------------------------------


ENTRY = {
    "version_id": "2" * 32, "source_id": HEX * 2, "name": "law.md", "title": "Law",
    "status": "indexed", "current": True, "valid_from": "2015-01-01T00:00:00Z",
    "valid_until": None, "received_at": "2026-01-01T00:00:00Z",
    "recorded_at": "2026-01-01T10:11:12Z", "cause": "superseded", "actor": "actor:1",
    "via": "upload", "size_bytes": 10, "body_bytes": 9,
    "changes": {"same": 7, "changed": 2, "added": 1},
}  # fmt: skip


def test_a_history_is_a_table(door: Door, kb: Kb) -> None:  # noqa: F811
    old = ENTRY | {
        "version_id": "1" * 32, "current": False, "valid_from": "2010-01-01T08:30:00Z",
        "valid_until": "2015-01-01T00:00:00Z", "cause": "received", "changes": None,
    }  # fmt: skip
    never = ENTRY | {"version_id": "3" * 32, "current": False, "status": "review",
                     "valid_from": None, "recorded_at": None, "changes": None}  # fmt: skip
    door.reply = JSONResponse(
        {"document_id": HEX, "project": "default", "source_key": "law", "title": "Law\x1b",
         "entries": [ENTRY, old, never]}
    )  # fmt: skip
    out = kb("history", HEX).out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert rows[0] == f"Law\ufffd ({HEX}, default)"
    assert rows[2:] == [
        "* 2015-01-01 – 2026-01-01 10:11:12 superseded actor:1 (upload) 2 changed, 1 added "
        + "2" * 32,
        "2010-01-01 08:30 – 2015-01-01 2026-01-01 10:11:12 received actor:1 (upload) " + "1" * 32,
        "never review actor:1 (upload) " + "3" * 32,
    ]


# -- as of -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, path", [
    (("doc", "list"), "/documents"),
    (("doc", "show", HEX), f"/documents/{HEX}"),
    (("doc", "body", HEX), f"/documents/{HEX}/body"),
])  # fmt: skip
def test_a_day_is_asked_for(door: Door, kb: Kb, words: tuple[str, ...], path: str) -> None:  # noqa: F811
    door.reply = JSONResponse(VERSION | {"documents": [], "next": None})
    done: Done = kb(*words, "--as-of", "2014-05-06", "--recorded-as-of", "2020-01-01", "--json")
    assert done.code == 0
    assert door.seen[0][1] == path
    assert {"as_of": "2014-05-06", "recorded_as_of": "2020-01-01"}.items() <= door.seen[0][
        2
    ].items()
