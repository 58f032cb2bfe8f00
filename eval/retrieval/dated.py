"""Laws in their versions: does the top passage hold the words of the day that is asked for?

Form of a folder: `manifest.jsonl` {law, file, date}, `changes.jsonl` {law, section, changed_on,
old_snippet, new_snippet, old_only, new_only}. Each law is a document whose versions are uploaded
oldest first; each change is asked for by the heading of its section, the day before, on the day,
and, where no later change touches the section, without a day.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from eval.retrieval.metrics import Values, figure
from eval.retrieval.pipeline import PARALLEL, Stuck, finished
from eval.retrieval.report import shown
from eval.retrieval.sets import BadSet, rows

BEFORE, ON, NOW = "the day before", "on the day", "without a day"
WHOLE, OWN = "all laws", "in its law"
TOP = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Version:
    """A text of a law, valid from a day."""

    law: str
    day: date
    path: Path


@dataclass(frozen=True)
class Asked:
    """A question at a day (None: now); `wanted` must be in the passage, `gone` in none."""

    when: str
    law: str
    section: str
    day: date | None
    wanted: str
    gone: str | None


@dataclass(frozen=True)
class Judged:
    """What came: the place from 1 of the right words, None: not among the first fifty; `section`:
    is the first passage of the right section? That may be long, and its words in a later passage.
    """

    asked: Asked
    scope: str
    place: int | None
    section: bool
    leaked: bool


def read(folder: Path) -> tuple[list[Version], list[Asked]]:
    """The versions, oldest first, and the questions.

    Raises:
        BadSet: a file is missing or is not of this form.
    """
    try:
        versions = [
            Version(row["law"], date.fromisoformat(row["date"]), folder / row["file"])
            for row in rows(folder / "manifest.jsonl", frozenset({"law", "file", "date"}))
        ]
        changes = rows(folder / "changes.jsonl", frozenset({"law", "section", "changed_on"}))
        last: dict[tuple[str, str], str] = {}
        for change in changes:
            key = (change["law"], change["section"])
            last[key] = max(last.get(key, ""), change["changed_on"])
        asked = [question for change in changes for question in _of(change, last)]
    except (KeyError, ValueError) as error:
        raise BadSet(f"{folder}: {error!r}") from error
    return sorted(versions, key=lambda v: (v.day, v.law)), asked


def _of(change: Mapping[str, Any], last: Mapping[tuple[str, str], str]) -> Iterator[Asked]:
    """`*_only`: the words are in no other text of the law, so they may not come on another day."""
    law, section, day = change["law"], change["section"], date.fromisoformat(change["changed_on"])
    old, new = _plain(change["old_snippet"]), _plain(change["new_snippet"])
    late = _written(change["new_snippet"]) if change.get("new_only") else None
    early = _written(change["old_snippet"]) if change.get("old_only") else None
    yield Asked(BEFORE, law, section, day - timedelta(days=1), old, late)
    yield Asked(ON, law, section, day, new, early)
    if last[law, section] == change["changed_on"]:
        yield Asked(NOW, law, section, None, new, early)


async def load(client: httpx.AsyncClient, project: str, versions: Sequence[Version]) -> None:
    """Every version of a law behind the one before it; laws beside each other.

    Raises:
        Stuck: a version is not in the index.
    """
    gate = asyncio.Semaphore(PARALLEL)

    async def law(name: str) -> None:
        async with gate:
            for version in versions:
                if version.law == name:
                    await _upload(client, project, version)

    await asyncio.gather(*(law(name) for name in sorted({v.law for v in versions})))


async def _upload(client: httpx.AsyncClient, project: str, version: Version) -> None:
    reply = await client.post(
        "/documents",
        files={"file": (f"{version.law}.md", version.path.read_bytes())},
        data={"project": project, "source": version.law, "valid_from": version.day.isoformat()},
    )
    accepted = reply.raise_for_status().json()
    async for job in finished(client, [accepted["job_id"]]):
        if job["status"] != "indexed":
            raise Stuck(f"{version.law} of {version.day}: {job['status']} {job['error']}")


async def ask(client: httpx.AsyncClient, project: str, asked: Sequence[Asked]) -> list[Judged]:
    """Each question twice: of all laws, and of its own only."""
    listed = await client.get("/documents", params={"project": project, "limit": 500})
    versions = listed.raise_for_status().json()["documents"]
    documents = {v["source_key"]: v["document_id"] for v in versions}
    judged = []
    for question in asked:
        for scope in (WHOLE, OWN):
            body: dict[str, Any] = {"query": question.section, "project": project, "top_k": 50}
            if question.day is not None:
                body["as_of"] = question.day.isoformat()
            if scope == OWN:
                body["documents"] = [documents[question.law]]
            reply = await client.post("/query", json=body)
            hits = reply.raise_for_status().json()["results"]
            judged.append(_judge(question, scope, hits, documents[question.law]))
    return judged


def _judge(question: Asked, scope: str, hits: Sequence[Mapping[str, Any]], document: str) -> Judged:
    """Only passages of the law itself count; what stands before them costs places."""
    texts = [_plain(h["text"]) if h["document_id"] == document else "" for h in hits]
    place = next((n for n, text in enumerate(texts, 1) if question.wanted in text), None)
    own = [_written(hit["text"]) for hit in hits if hit["document_id"] == document]
    leaked = question.gone is not None and any(question.gone in text for text in own)
    first = hits[0] if hits else {"document_id": "", "heading_path": []}
    under = [_plain(heading) for heading in first["heading_path"]]
    right = first["document_id"] == document and _plain(question.section) in under
    return Judged(question, scope, place, right, leaked)


def lines(name: str, versions: Sequence[Version], judged: Sequence[Judged]) -> Iterator[str]:
    """A row for each time and scope; `of another day`: questions to which words came that no text
    of that day has."""
    laws = len({v.law for v in versions})
    yield f"{name}: {laws} laws, {len(versions)} versions, {len(judged) // 2} questions"
    yield ""
    heads = (
        "as of", "searched", "questions", "section on top", "words on top", f"words in {TOP}",
        "of another day",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|"
    for when in (BEFORE, ON, NOW):
        for scope in (WHOLE, OWN):
            own = [j for j in judged if j.asked.when == when and j.scope == scope]
            right = _share(j.section for j in own)
            first, few = (
                _share(j.place is not None and j.place <= most for j in own) for most in (1, TOP)
            )
            leaked = sum(j.leaked for j in own)
            yield f"| {when} | {scope} | {len(own)} | {right} | {first} | {few} | {leaked} |"


def _share(judged: Iterable[bool]) -> str:
    values: Values = np.array(list(judged), float)
    return shown(figure(values))


def as_json(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Each question with what came."""
    return [
        {
            "when": j.asked.when, "law": j.asked.law, "section": j.asked.section,
            "day": j.asked.day and j.asked.day.isoformat(), "searched": j.scope,
            "place": j.place, "right_section": j.section, "of_another_day": j.leaked,
        }
        for j in judged
    ]  # fmt: skip


def _plain(text: str) -> str:
    """Words only: marks, escapes and line ends differ between a source and canonical Markdown. A
    snippet may end within a word."""
    return " ".join(_WORD.findall(text.lower()))


def _written(text: str) -> str:
    """With its marks: words alone may be the beginning of what took their place."""
    return " ".join(text.split())
