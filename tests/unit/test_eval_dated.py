"""Laws in versions: what is asked when, what counts, and what must not come."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest

from eval.retrieval import dated
from eval.retrieval.pipeline import Stuck
from eval.retrieval.sets import BadSet

CHANGE = {
    "law": "a", "section": "§ 5", "changed_on": "2013-01-11", "old_snippet": "ten\n euro",
    "new_snippet": "twenty euro", "old_only": True, "new_only": False,
}  # fmt: skip
LATER = CHANGE | {
    "changed_on": "2018-02-03", "old_snippet": "twenty euro", "new_snippet": "thirty",
    "old_only": False,
}  # fmt: skip


def folder(path: Path, *changes: Mapping[str, Any]) -> Path:
    versions = [
        {"law": "a", "file": "new.md", "date": "2013-01-11"},
        {"law": "a", "file": "old.md", "date": "2012-08-02"},
    ]
    for name, rows in (("manifest", versions), ("changes", changes)):
        (path / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (path / "old.md").write_text("# A\n\n## § 5\n\nten euro\n")
    (path / "new.md").write_text("# A\n\n## § 5\n\ntwenty euro\n")
    return path


def test_a_change_is_asked_for_before_on_and_without_its_day(tmp_path: Path) -> None:
    versions, asked = dated.read(folder(tmp_path, CHANGE, LATER))
    assert [v.day.year for v in versions] == [2012, 2013]
    assert [(q.when, q.day, q.wanted, q.gone) for q in asked] == [
        (dated.BEFORE, date(2013, 1, 10), "ten euro", None),
        (dated.ON, date(2013, 1, 11), "twenty euro", "ten euro"),
        (dated.BEFORE, date(2018, 2, 2), "twenty euro", None),
        (dated.ON, date(2018, 2, 3), "thirty", None),
        (dated.NOW, None, "thirty", None),  # only the last change of a section is what holds now
    ]


@pytest.mark.parametrize("wrong", [{"changed_on": "soon"}, {"old_snippet": None}])
def test_a_folder_of_another_form_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    broken = {k: v for k, v in (CHANGE | wrong).items() if v is not None}
    with pytest.raises(BadSet):
        dated.read(folder(tmp_path, broken))
    with pytest.raises(BadSet, match="changes"):
        (tmp_path / "changes.jsonl").unlink()
        dated.read(tmp_path)


class Base:
    """Answers as a stack would; `hits` to every question."""

    def __init__(self, *hits: tuple[str, str], status: str = "indexed") -> None:
        self.uploads: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.hits, self.status = hits, status

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/query":
            self.asked.append(json.loads(request.content))
            under = ["A", "§ 5"]
            hits = [{"document_id": d, "text": t, "heading_path": under} for d, t in self.hits]
            return httpx.Response(200, json={"results": hits})
        if request.url.path.startswith("/jobs/"):
            job = {"job_id": "j", "status": self.status, "done": True, "error": None}
            return httpx.Response(200, json=job)
        if request.method == "POST":
            self.uploads.append(request.content.decode())
            return httpx.Response(202, json={"job_id": "j", "document_id": "doc-a"})
        found = [{"source_key": "a", "document_id": "doc-a"}]
        return httpx.Response(200, json={"documents": found})

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self), base_url="http://kb")


async def test_versions_go_up_oldest_first_with_their_days(tmp_path: Path) -> None:
    versions, _ = dated.read(folder(tmp_path, CHANGE))
    base = Base()
    await dated.load(base.client(), "p", versions)
    assert ["2012-08-02" in base.uploads[0], "2013-01-11" in base.uploads[1]] == [True, True]


async def test_a_version_that_is_held_back_ends_the_run(tmp_path: Path) -> None:
    versions, _ = dated.read(folder(tmp_path, CHANGE))
    with pytest.raises(Stuck, match="a of 2012-08-02: review"):
        await dated.load(Base(status="review").client(), "p", versions)


async def test_only_the_laws_own_passages_count_and_words_of_another_day_are_told(
    tmp_path: Path,
) -> None:
    _, asked = dated.read(folder(tmp_path, CHANGE))
    base = Base(("other", "twenty euro"), ("doc-a", "It is ten  euro."), ("doc-a", "twenty\neuro"))
    judged = await dated.ask(base.client(), "p", asked)
    assert [(j.asked.when, j.scope, j.place, j.leaked) for j in judged[:4]] == [
        (dated.BEFORE, dated.WHOLE, 2, False),
        (dated.BEFORE, dated.OWN, 2, False),
        (dated.ON, dated.WHOLE, 3, True),
        (dated.ON, dated.OWN, 3, True),
    ]
    assert base.asked[0] == {"query": "§ 5", "project": "p", "top_k": 50, "as_of": "2013-01-10"}
    assert base.asked[1]["documents"] == ["doc-a"]
    assert "as_of" not in base.asked[-1]
    table = list(dated.lines("laws", [], judged))
    assert "| on the day | all laws | 1 | 0.0000 | 0.0000 | 1.0000 | 1 |" in table
