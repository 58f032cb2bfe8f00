"""Versions get a class of their project's taxonomy, from what their summaries say.

A summary and a class are near each other by what a model makes of them, and by the keywords that
stand in it. No text is embedded twice: vectors of summaries and of classes are in the cache.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from contracts.artifacts import BodyMeta, Summary
from contracts.events import (
    UNCATEGORIZED,
    Chunked,
    Classified,
    Project,
    TaxonomyClass,
    TaxonomySet,
)
from contracts.taxonomy import Reclassified, TaxonomyChange
from kernel.errors import Refusal, WrongVersion
from kernel.keywords import analyse, query_terms
from kernel.log import Log, Pending, reaction_id
from services.indexer.contents import Contents
from services.indexer.erase import purge
from services.indexer.index import Index

CLASSIFIER = "similarity-1"
"""A name changes when the same summary would be classified in another way."""

SOFTNESS, NEITHER = 0.015, 0.07
"""How a nearness becomes a certainty: fitted on half of eval.classes with the bundled embedder."""
KEYWORD, MOST_KEYWORDS = 0.03, 3
"""What a keyword in the summary adds to the nearness, and how many count."""
CANDIDATE, MOST_TAGS = 0.15, 3
"""A further class that is so certain becomes a tag."""
AT_ONCE = 60.0
"""Seconds of one request."""
HEADINGS = 40
"""Of an outline, that are looked at: a model reads a page or so."""

BACKGROUND = (
    "law and courts", "taxes and accounting", "medicine and health", "cooking and food",
    "sports and games", "music and film", "computers and software", "machines and engineering",
    "building and housing", "traffic and travel", "farming and animals", "weather and nature",
    "schools and teaching", "family and children", "work and employees", "money and banks",
    "war and armies", "elections and government", "religion and churches", "art and museums",
    "language and literature", "mathematics and physics", "chemistry and materials",
    "news and advertising",
)  # fmt: skip
"""What documents are about, anywhere: all texts are a little alike to a model, and what these and
the classes have in common is taken off."""

Matrix = NDArray[np.float32]


# -- what a taxonomy is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Taxonomy:
    """The one in force, and when it was set."""

    said: TaxonomySet
    at: datetime


async def taxonomy_of(log: Log, project: str) -> Taxonomy | None:
    """That of a project: the one that was set last."""
    for envelope in reversed(await log.stream(f"taxonomy-{project}")):
        fact = envelope.fact()
        if isinstance(fact, TaxonomySet):
            return Taxonomy(fact, envelope.recorded_at)
    return None


async def set_taxonomy(log: Log, project: Project, change: TaxonomyChange, actor: str) -> Taxonomy:
    """Record a taxonomy, if it is not the one in force."""
    said = change.model_dump(mode="json")
    name = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    now = await taxonomy_of(log, project)
    if now is None or now.said.taxonomy != name:
        fact = TaxonomySet(project=project, taxonomy=name, actor=actor, **said)
        await log.append([Pending(fact, uuid4(), uuid4(), actor)])
        now = await taxonomy_of(log, project)
    if now is None:
        raise Refusal("no-taxonomy", "the taxonomy was not recorded", status=500)
    return now


# -- what class a summary is of --------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """A main class, or `uncategorized`, further ones, and how certain the likeliest is."""

    main: str
    tags: tuple[str, ...]
    confidence: float


def judge(
    text: Matrix, classes: Matrix, background: Matrix, hits: Sequence[int], taxonomy: TaxonomySet
) -> Judgement:
    """The class of a text.

    Args:
        text: its vector.
        classes: theirs, in the order of the taxonomy.
        background: of what texts are about anywhere.
        hits: keywords of each class that stand in the text.
        taxonomy: the classes.
    """
    middle = np.concatenate([classes, background]).mean(axis=0)
    apart = classes - middle
    lengths = np.linalg.norm(apart, axis=1, keepdims=True)
    nearness = (apart / np.maximum(lengths, 1e-9)) @ text
    nearness = nearness + KEYWORD * np.minimum(np.asarray(hits), MOST_KEYWORDS)
    chances = np.exp((nearness - nearness.max()) / SOFTNESS)
    chances = chances / (chances.sum() + np.exp((NEITHER - nearness.max()) / SOFTNESS))
    order = sorted(range(len(chances)), key=lambda n: (-float(chances[n]), n))
    names = [taxonomy.classes[n].name for n in order]
    likely = [n for n, at in zip(names, order, strict=True) if chances[at] >= CANDIDATE]
    confidence = min(1.0, max(0.0, float(chances[order[0]])))
    if confidence < taxonomy.threshold:
        return Judgement(UNCATEGORIZED, tuple(likely[:MOST_TAGS]), confidence)
    return Judgement(names[0], tuple(n for n in likely if n != names[0])[:MOST_TAGS], confidence)


def keyword_hits(summary: str, language: str, taxonomy: TaxonomySet) -> list[int]:
    """How many keywords of each class stand in a text, in any form of their words."""
    held = {term for word in analyse(summary, language) for term in word.terms}
    return [sum(_stands(keyword, held) for keyword in one.keywords) for one in taxonomy.classes]


def _stands(keyword: str, held: set[str]) -> bool:
    words = query_terms(keyword).words
    return bool(words) and all(held & set(word.terms) for word in words if not word.extra)


def told(title: str, summary: Summary) -> str:
    """What is compared with the classes: the title, the one sentence, and the outline; where there
    is none, the digest."""
    lines = [title, summary.lead.text if summary.lead else ""]
    if summary.outline:
        headings = [s.heading_path[-1] for s in summary.sections if s.heading_path]
        lines += headings[:HEADINGS]
    else:
        lines += [s.text for section in summary.sections for s in section.digest]
    return "\n".join(dict.fromkeys(line for line in lines if line))


def described(one: TaxonomyClass) -> str:
    """What is embedded of a class."""
    name = one.name.replace("/", ", ")
    return f"{name}: {one.description} {', '.join(one.keywords)}".strip(" :")


async def classify(index: Index, cut: Chunked, taxonomy: TaxonomySet) -> Classified | None:
    """The class of a version by its summary; None: it has none, or it was erased meanwhile.

    Raises:
        Retry: the embedder of the project's index is away.
    """
    if cut.summary_sha256 is None:
        return None
    try:
        summary = Summary.model_validate_json(await index.blob(cut.summary_sha256))
        meta = BodyMeta.model_validate_json(await index.blob(cut.meta_sha256))
    except FileNotFoundError:
        return None
    embedder = await index.embedder(await index.live(cut.project))
    text = told(meta.title, summary)
    classes = [described(one) for one in taxonomy.classes]
    mine, _ = await index.known([text], embedder, cut.version_id)
    theirs, _ = await index.known([*classes, *BACKGROUND], embedder)
    digests = (s.text for section in summary.sections for s in section.digest)
    judged = judge(
        mine[text],
        np.stack([theirs[c] for c in classes]),
        np.stack([theirs[b] for b in BACKGROUND]),
        keyword_hits("\n".join((text, *digests)), summary.language, taxonomy),
        taxonomy,
    )
    if not (await index.texts(cut)).live:
        await purge(cut, index)  # the vector of its summary came after the erasure
        return None
    return Classified(
        **cut.ids,
        body_sha256=cut.body_sha256,
        taxonomy=taxonomy.taxonomy,
        main=judged.main,
        tags=judged.tags,
        confidence=round(judged.confidence, 4),
        classifier=CLASSIFIER,
        embedder=embedder.model_id,
    )


# -- all versions anew -----------------------------------------------------------------------------


async def reclassify(
    index: Index, project: str, actor: str, *, seconds: float = AT_ONCE
) -> Reclassified:
    """Classify every version in the index that this taxonomy has not classified yet, at least one
    of them, and for no longer than `seconds`.

    Safe to repeat, and to break off: it goes on where it was.

    Raises:
        Refusal: `no-taxonomy`.
    """
    taxonomy = await taxonomy_of(index.log, project)
    if taxonomy is None:
        raise Refusal("no-taxonomy", f"{project} has no taxonomy: kb taxonomy set", status=404)
    contents = Contents(project)
    await contents.catch_up(index.log)
    embedder = (await index.live(project)).embedder
    counts, known, without, done, end = Counter[str](), 0, 0, 0, time.monotonic() + seconds
    for version_id, cut in contents.indexed.items():
        if counts and time.monotonic() > end:
            break
        done += 1
        if is_of(contents.classified.get(version_id), cut, taxonomy.said, embedder):
            known += 1
            continue
        event = await classify(index, cut, taxonomy.said)
        if event is None:
            without += cut.summary_sha256 is None
        elif await _record(index.log, event, contents, actor):
            counts[event.main] += 1
    return Reclassified(
        taxonomy=taxonomy.said.taxonomy,
        classified=counts.total(),
        known=known,
        without_summary=without,
        left=len(contents.indexed) - done,
        classes=dict(counts),
    )


def is_of(said: Classified | None, cut: Chunked, taxonomy: TaxonomySet, embedder: str) -> bool:
    """Was this text classified in exactly this way before?"""
    return said is not None and (
        said.body_sha256, said.taxonomy, said.classifier, said.embedder,
    ) == (cut.body_sha256, taxonomy.taxonomy, CLASSIFIER, embedder)  # fmt: skip


async def last_class(log: Log, cut: Chunked) -> Classified | None:
    """What a version was classified as last."""
    for envelope in reversed(await log.stream(cut.stream_id)):
        fact = envelope.fact()
        if isinstance(fact, Classified):
            return fact
    return None


async def _record(event_log: Log, event: Classified, contents: Contents, actor: str) -> bool:
    """False: the version moved on; what comes of that is classified by itself."""
    saying = contents.sayings[event.version_id]
    pending = Pending(
        event,
        reaction_id(saying.event_id, "indexer.taxonomy", f"{event.taxonomy} {event.embedder}"),
        saying.job,
        actor,
        causation_id=saying.event_id,
        lane=saying.lane,
    )
    try:
        await event_log.append([pending], expected=contents.texts[event.version_id].at)
    except WrongVersion:
        return False
    return True
