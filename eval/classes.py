"""How well the classifier tells subjects apart: school questions in four Slavic languages, classes
described in English.

    python -m eval.classes      # with the embedder that KB_EMBEDDER names, else the bundled one

Three questions of a subject make a text. SOFTNESS and NEITHER of `services.indexer.taxonomy` were
fitted on one half of the texts (by hash); the figures are of the other. "Out" leaves the right
class out of the taxonomy: such a text should be `uncategorized`.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contracts.events import UNCATEGORIZED, TaxonomyClass, TaxonomySet
from kernel.embedder import Embedder
from kernel.embedder.load import load_embedder
from services.indexer.taxonomy import BACKGROUND, Judgement, Matrix, described, judge

FOLDER = Path("../shared/evaldata/retrieval/exams_parallel")
LANGUAGES = ("bg", "hr", "mk", "sr")
TOGETHER = 3
SUBJECTS = {
    "biology": "Living things: cells, plants, animals, genetics, the human body, evolution.",
    "chemistry": "Substances and their reactions: elements, acids, bases, compounds, molecules.",
    "physics": "Motion, force, energy, electricity, light, heat and waves.",
    "history": "Events of the past: wars, rulers, states, treaties, revolutions, antiquity.",
    "geography": "Countries, climate, population, rivers, cities, economy of regions.",
    "geology": "Rocks, minerals, the structure of the Earth, fossils, tectonics.",
    "philosophy": "Thought about being, knowledge and reason; philosophers and their works.",
    "ethics": "Right and wrong acts, virtue, duty, moral norms and values.",
    "sociology": "Society, social groups, institutions, family, social change.",
    "psychology": "Mind and behaviour: memory, perception, emotions, personality, development.",
    "politics": "State, parliament, elections, constitution, government, parties.",
    "religion": "Faith, church, Bible, God, world religions.",
    "informatics": "Computers, programs, algorithms, data, networks.",
    "business": "Companies, marketing, management, accounting, finance, trade.",
    "fine arts": "Painting, sculpture, architecture, styles and artists.",
}


@dataclass(frozen=True)
class Text:
    """Questions of one subject."""

    subject: str
    language: str
    text: str

    @property
    def held_out(self) -> bool:
        """Is it of the half that nothing was fitted on?"""
        return int(hashlib.sha256(self.text.encode()).hexdigest(), 16) % 2 == 1


def texts(folder: Path = FOLDER) -> Iterator[Text]:
    """All of them, both halves."""
    for language in LANGUAGES:
        by_subject: dict[str, list[str]] = {}
        for line in (folder / f"questions_{language}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            by_subject.setdefault(row["subject"].lower(), []).append(row["text"])
        for subject, questions in by_subject.items():
            for first in range(0, len(questions) - TOGETHER + 1, TOGETHER):
                yield Text(subject, language, "\n".join(questions[first : first + TOGETHER]))


class Classes:
    """The subjects as a taxonomy, embedded."""

    def __init__(self, vectors: Matrix, background: Matrix) -> None:
        self._vectors, self._background = vectors, background
        self._classes = [TaxonomyClass(name=n, description=d) for n, d in SUBJECTS.items()]

    @classmethod
    async def embedded(cls, embedder: Embedder) -> "Classes":
        """By a model."""
        told = [described(TaxonomyClass(name=n, description=d)) for n, d in SUBJECTS.items()]
        vectors = await embedder.embed_documents([*told, *BACKGROUND])
        return cls(vectors[: len(told)], vectors[len(told) :])

    def judge(self, text: Matrix, without: str | None = None) -> Judgement:
        """What class a text is of, where one class is not there."""
        kept = [n for n, c in enumerate(self._classes) if c.name != without]
        taxonomy = TaxonomySet(
            project="eval", taxonomy="0" * 64, classes=tuple(self._classes[n] for n in kept),
            threshold=0.5, actor="eval",
        )  # fmt: skip
        return judge(text, self._vectors[kept], self._background, [0] * len(kept), taxonomy)


async def main() -> None:
    """Print the table."""
    embedder = load_embedder()
    classes = await Classes.embedded(embedder)
    found = [t for t in texts() if t.held_out]
    vectors = await embedder.embed_documents([t.text for t in found])
    inside = [classes.judge(v) for v in vectors]
    outside = [classes.judge(v, t.subject) for v, t in zip(vectors, found, strict=True)]
    print(f"{embedder.model_id}: {len(found)} texts, {len(SUBJECTS)} classes\n")
    print("| language | classified | of them right | out: uncategorized |")
    print("|---|---|---|---|")
    for language in (*LANGUAGES, "all"):
        mine = [n for n, t in enumerate(found) if language in (t.language, "all")]
        print(f"| {language} | {_row(found, inside, outside, mine)} |")
    print(f"\nmean error of the certainty: {_error(found, inside, outside):.3f}")
    await embedder.aclose()


def _row(
    found: list[Text], inside: list[Judgement], outside: list[Judgement], mine: list[int]
) -> str:
    classified = [n for n in mine if inside[n].main != UNCATEGORIZED]
    right = sum(inside[n].main == found[n].subject for n in classified)
    refused = sum(outside[n].main == UNCATEGORIZED for n in mine)
    shares = (len(classified) / len(mine), right / max(1, len(classified)), refused / len(mine))
    return " | ".join(f"{share:.2f}" for share in shares)


def _error(found: list[Text], inside: list[Judgement], outside: list[Judgement]) -> float:
    """How far the certainty is from how often it is right, in five bins; "out" is never right."""
    told = [
        (j.confidence, float(_likeliest(j) == t.subject))
        for j, t in zip(inside, found, strict=True)
    ]
    told += [(j.confidence, 0.0) for j in outside]
    sure, right = np.array(told).T
    bins = np.minimum((sure * 5).astype(int), 4)
    return float(
        sum(
            abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
            for b in set(bins.tolist())
        )
    )


def _likeliest(judged: Judgement) -> str:
    return judged.main if judged.main != UNCATEGORIZED else next(iter(judged.tags), "")


if __name__ == "__main__":
    if not FOLDER.exists():
        raise SystemExit(f"{FOLDER} is not here: nothing was measured")
    asyncio.run(main())
