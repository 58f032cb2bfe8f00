"""Bases of any size, made quickly: rows by COPY, vectors straight into the engine, no log.

A passage is made of pieces of real passages of one language (`../shared/evaldata/retrieval`), so
words are as frequent as they are in a language, and of a few identifiers, the more different ones
the larger the base. Its vector is the mean of those of its pieces: near to passages that share
some. One version in twenty has ended. Questions are real ones, and pieces of passages with an
identifier.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import asyncpg
import numpy as np

from eval.corpus import EVALDATA
from kernel.db import queries
from kernel.embedder.base import Embedder, Matrix
from kernel.keywords import Word, analyse, tsvector
from kernel.vectors import Point, VectorIndex, collection_name

PROJECT = "default"
PASSAGES = 20
"""Of one version."""
PIECE, PIECES = 8, 10
"""Words of a piece; pieces of a passage."""
RARE = 3
"""Identifiers of a passage."""
BATCH = 5000
SHARE = 6000
"""Pieces of a language, at most."""
BEGIN, NOW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
LANGUAGES = {"sr-Cyrl": "sr", "sr-Latn": "sr"}
"""Folders that are not named by the language."""


@dataclass(frozen=True)
class Piece:
    """A few words of a real passage."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Passage:
    """A made passage; `pieces` are numbers."""

    number: int
    language: str
    pieces: tuple[int, ...]
    rare: tuple[str, ...]

    @property
    def version(self) -> str:
        return hashlib.md5(b"%d" % (self.number // PASSAGES), usedforsecurity=False).hexdigest()

    @property
    def heading_path(self) -> tuple[str, str]:
        return (f"Act {self.number // PASSAGES}", f"Article {self.number % PASSAGES + 1}")

    @property
    def point_id(self) -> UUID:
        return uuid5(NAMESPACE_OID, str(self.number))

    @property
    def window(self) -> tuple[datetime, datetime | None]:
        version = self.number // PASSAGES
        begins = BEGIN + timedelta(days=version % 2000)
        return begins, begins + timedelta(days=90) if version % 20 == 19 else None


class Material:
    """Real pieces in several languages, and what is made of them."""

    def __init__(self, pieces: dict[str, list[Piece]], questions: Sequence[str]) -> None:
        self.pieces = [piece for some in pieces.values() for piece in some]
        self.questions = list(questions)
        self._spans: dict[str, range] = {}
        first = 0
        for language, some in pieces.items():
            self._spans[language] = range(first, first + len(some))
            first += len(some)

    @classmethod
    def read(cls) -> "Material":
        """From the evaluation data; FileNotFoundError without it."""
        chance = random.Random(11)
        pieces: dict[str, list[Piece]] = {}
        questions: list[str] = []
        folders = sorted((EVALDATA / "retrieval").glob("*/*/corpus.jsonl"))
        if not folders:
            raise FileNotFoundError(EVALDATA / "retrieval")
        for corpus in folders:
            language = LANGUAGES.get(corpus.parent.name, corpus.parent.name[:2])
            if corpus.parents[1].name == "german_laws":
                language = "de"
            found = pieces.setdefault(language, [])
            for text in _texts(corpus):
                words = text.split()
                starts = range(0, len(words) - PIECE, PIECE)
                found += (_piece(words[at : at + PIECE], language) for at in starts)
            questions += _texts(corpus.with_name("queries.jsonl"))
        for language, found in pieces.items():
            chance.shuffle(found)
            pieces[language] = found[:SHARE]
        chance.shuffle(questions)
        return cls(pieces, questions)

    async def embedded(self, embedder: Embedder) -> Matrix:
        """The vectors of all pieces."""
        return await embedder.embed_documents([piece.text for piece in self.pieces])

    def passages(self, count: int) -> Iterator[Passage]:
        """The same ones for the same `count`."""
        chance, languages = random.Random(count), list(self._spans)
        language = languages[0]
        topic: list[int] = []
        for number in range(count):
            if number % PASSAGES == 0:
                language = chance.choice(languages)
                topic = chance.choices(self._spans[language], k=PIECES)
            span = self._spans[language]
            pieces = [*chance.sample(topic, 3), *chance.choices(span, k=PIECES - 3)]
            chance.shuffle(pieces)
            rare = tuple(f"k{int(count * chance.random() ** 3)}" for _ in range(RARE))
            yield Passage(number, language, tuple(pieces), rare)

    def text(self, passage: Passage) -> str:
        return " ".join([*(self.pieces[p].text for p in passage.pieces), *passage.rare])

    def words(self, passage: Passage) -> list[Word]:
        own = [word for p in passage.pieces for word in self.pieces[p].words]
        return [*own, *(Word((f"={term}",)) for term in passage.rare)]

    def asked(self, count: int, size: int, seed: int) -> list[str]:
        """Questions to a base of `size`: every other is real, the others are words of passages."""
        chance = random.Random(seed)
        made = []
        for number in range(count):
            if number % 2:
                piece = chance.choice(self.pieces)
                made.append(f"{piece.text} k{int(size * chance.random() ** 3)}")
            else:
                made.append(chance.choice(self.questions))
        return made


async def fill(
    dsn: str, vectors: VectorIndex, material: Material, embedder: Embedder, count: int
) -> None:
    """A project of `count` passages, in Postgres and in the engine."""
    sql, connection = queries("eval.bench", "seeded"), await asyncpg.connect(dsn)
    name, known = collection_name(PROJECT, 1), await material.embedded(embedder)
    await vectors.create(name, embedder.dim)
    await sql.make_room(connection)
    await sql.open_project(
        connection, project=PROJECT, embedder=embedder.model_id, dim=embedder.dim
    )
    batch: list[Passage] = []
    for passage in material.passages(count):
        batch.append(passage)
        if len(batch) == BATCH or passage.number == count - 1:
            rows = [_row(material, p) for p in batch]
            await connection.copy_records_to_table("made", records=rows)
            await sql.take(connection, project=PROJECT)
            await sql.empty(connection)
            await vectors.upsert(name, points(batch, known))
            batch = []
    await sql.finish(connection, project=PROJECT)
    await sql.index_terms(connection)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


def points(passages: Sequence[Passage], known: Matrix) -> list[Point]:
    """What the engine stores of them."""
    matrix = np.stack([known[list(p.pieces)].mean(axis=0) for p in passages])
    return [
        Point(
            p.point_id, vector, p.version, p.version, PROJECT, p.language, p.heading_path,
            *p.window,
        )
        for p, vector in zip(passages, matrix, strict=True)
    ]  # fmt: skip


def _row(material: Material, passage: Passage) -> tuple[Any, ...]:
    text, words = material.text(passage), material.words(passage)
    begins, ends = passage.window
    return (
        passage.number, passage.version, passage.point_id, list(passage.heading_path),
        passage.language, text, len(text.encode()), tsvector(words), len(words), begins, ends,
    )  # fmt: skip


def _texts(file: Path) -> list[str]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as lines:
        return [str(json.loads(line)["text"]) for line in lines]


def _piece(words: Sequence[str], language: str) -> Piece:
    text = " ".join(words)
    return Piece(text, tuple(analyse(text, language)))
