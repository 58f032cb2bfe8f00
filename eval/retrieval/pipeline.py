"""Through the real pipeline: documents up by HTTP, their jobs to the end, then the questions."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from contracts.http import FINAL
from eval.retrieval.metrics import DEPTH
from eval.retrieval.sets import Document

PARALLEL = 4
POLL_SECONDS = 0.1
STUCK_SECONDS = 900.0
"""No document came to its end for so long: something is broken, and a figure would say nothing."""
WARM = 3
"""Questions that are asked before the clock runs: the models are loaded by them."""
NAME = "document.md"
"""Of every upload. Without a heading it is the title, which must not tell documents apart."""

Ranking = list[tuple[str, float]]
"""Document ids with their scores, best first."""


class Stuck(Exception):
    """The pipeline does not move, or refuses everything."""


@dataclass(frozen=True)
class HeldBack:
    """A document that is not in the index: its job's status, and why."""

    id: str
    status: str
    why: str


@dataclass(frozen=True)
class Loaded:
    """A corpus in a project of its own. `ids`: corpus id by document id."""

    project: str
    ids: Mapping[str, str]
    held_back: tuple[HeldBack, ...]
    seconds: float


@dataclass
class Answers:
    """What the questions brought, in the order in which they were asked."""

    rankings: dict[str, Ranking] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Problem by query: too long, for instance. It counts as one without an answer."""

    @property
    def order(self) -> dict[str, list[str]]:
        """The rankings without their scores."""
        return {query: [id_ for id_, _ in ranking] for query, ranking in self.rankings.items()}


async def load(
    client: httpx.AsyncClient, project: str, documents: Iterable[Document], *, title: bool
) -> Loaded:
    """Every document as an upload like anybody's: scanned, and not trusted."""
    began = time.perf_counter()
    gate = asyncio.Semaphore(PARALLEL)
    ids: dict[str, str] = {}
    jobs: dict[str, Document] = {}
    held: list[HeldBack] = []

    async def upload(document: Document) -> None:
        async with gate:
            reply = await client.post(
                "/documents",
                files={"file": (NAME, document.markdown(title=title).encode())},
                data={"project": project, "source": document.id},
            )
        if 400 <= reply.status_code < 500:
            held.append(HeldBack(document.id, "refused", _problem(reply)))
            return
        accepted = reply.raise_for_status().json()
        ids[accepted["document_id"]] = document.id
        jobs[accepted["job_id"]] = document

    await asyncio.gather(*(upload(document) for document in documents))
    indexed = 0
    async for job in finished(client, list(jobs)):
        if job["status"] == "indexed":
            indexed += 1
        else:
            why = await _why(client, job)
            held.append(HeldBack(jobs[job["job_id"]].id, job["status"], why))
    if not indexed:
        raise Stuck(f"no document came into the index: {held[:3]}")
    held.sort(key=lambda h: (h.status, h.id))
    return Loaded(project, ids, tuple(held), time.perf_counter() - began)


async def finished(client: httpx.AsyncClient, jobs: list[str]) -> Any:
    """Each job when it is done, in the order of the uploads."""
    moved = time.monotonic()
    for job_id in jobs:
        while True:
            reply = await client.get(f"/jobs/{job_id}")
            # The list of jobs is a projection: a new one may not be in it yet.
            if reply.status_code != 404:
                job = reply.raise_for_status().json()
                if job["done"] or job["status"] in FINAL:
                    break
            if time.monotonic() - moved > STUCK_SECONDS:
                raise Stuck(
                    f"job {job_id} has not ended within {STUCK_SECONDS:.0f} s: {reply.text}"
                )
            await asyncio.sleep(POLL_SECONDS)
        moved = time.monotonic()
        yield job


async def _why(client: httpx.AsyncClient, job: dict[str, Any]) -> str:
    """The rules that hold a document back, or the code of the failure."""
    if job["status"] in ("review", "blocked"):
        reply = await client.get(f"/documents/{job['version_id']}")
        if reply.is_success and (scan := reply.json()["scan"]):
            return ", ".join(scan["rules"][:3])
    return str((job["error"] or {}).get("code", ""))


async def ask(client: httpx.AsyncClient, loaded: Loaded, queries: Mapping[str, str]) -> Answers:
    """Every question, one at a time; of each document its first passage counts."""
    for text in list(queries.values())[:WARM]:
        await _query(client, loaded.project, text)
    answers = Answers()
    for id_, text in queries.items():
        started = time.perf_counter()
        reply = await _query(client, loaded.project, text)
        spent = time.perf_counter() - started
        if 400 <= reply.status_code < 500:
            answers.refused[id_] = _problem(reply)
            continue
        answers.milliseconds.append(spent * 1000)
        answers.rankings[id_] = ranking(reply.raise_for_status().json()["results"], loaded.ids)
    if not answers.rankings:
        raise Stuck(f"every question was refused: {list(answers.refused.values())[:1]}")
    return answers


async def _query(client: httpx.AsyncClient, project: str, text: str) -> httpx.Response:
    return await client.post("/query", json={"query": text, "project": project, "top_k": DEPTH})


def ranking(hits: Iterable[Mapping[str, Any]], ids: Mapping[str, str]) -> Ranking:
    """Passages as documents of the corpus: the first of each counts."""
    return firsts((ids[hit["document_id"]], hit["score"]) for hit in hits)


def firsts(found: Iterable[tuple[str, float]]) -> Ranking:
    """Of each document its first place."""
    places: dict[str, float] = {}
    for id_, score in found:
        places.setdefault(id_, score)
    return list(places.items())


def _problem(reply: httpx.Response) -> str:
    return str(reply.json().get("type", reply.status_code)).removeprefix("urn:kb:problem:")
