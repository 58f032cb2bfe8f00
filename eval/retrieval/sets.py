"""A retrieval set: documents, queries, and which documents answer which query.

Format (shared/evaldata/README.md): `corpus.jsonl` and `queries.jsonl` with `_id` and `text`, a
document also with `title` and `lang`; `qrels.tsv` with a head line, then query, document,
relevance. What is relevant above 0 answers; by how much is not read.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROW = frozenset({"_id", "text"})
"""What a document and a query have at least."""


class BadSet(Exception):
    """A folder that is no retrieval set."""


@dataclass(frozen=True)
class Document:
    """A row of the corpus."""

    id: str
    title: str
    text: str
    lang: str = ""

    def markdown(self, *, title: bool) -> str:
        """As it is uploaded. A title is one line, whatever it was."""
        head = " ".join(self.title.split())
        return f"# {head}\n\n{self.text}\n" if title and head else f"{self.text}\n"


@dataclass(frozen=True)
class RetrievalSet:
    """`queries`: text by id. `relevant`: of each query that counts, the documents that answer it.

    `notes`: what was left out or is odd, with how often.
    """

    name: str
    documents: tuple[Document, ...]
    queries: Mapping[str, str]
    relevant: Mapping[str, frozenset[str]]
    notes: Mapping[str, int] = field(default_factory=dict)


def read(folder: Path) -> RetrievalSet:
    """The set as it is: nothing of its qrels is dropped, so figures compare with other tools'.

    Raises:
        BadSet: a file is missing or cannot be read, an id comes twice.
    """
    documents = documents_of(folder)
    known = {d.id for d in documents}
    queries = {str(r["_id"]): str(r["text"]) for r in rows(folder / "queries.jsonl", ROW)}
    relevant = _qrels(folder / "qrels.tsv")
    notes = Counter({
        "queries without a relevant document, not asked": len(queries.keys() - relevant.keys()),
        "queries of qrels.tsv without a text, counted as missed": len(relevant.keys() - queries),
        "relevant documents that the corpus lacks, counted as missed": sum(
            len(ids - known) for ids in relevant.values()
        ),
    })  # fmt: skip
    asked = {id_: text for id_, text in queries.items() if id_ in relevant}
    name = "/".join(folder.resolve().parts[-2:])
    return RetrievalSet(name, documents, asked, relevant, +notes)


def documents_of(folder: Path) -> tuple[Document, ...]:
    """The corpus.

    Raises:
        BadSet: it cannot be read, or an id comes twice.
    """
    found = rows(folder / "corpus.jsonl", ROW)
    twice = [id_ for id_, n in Counter(str(r["_id"]) for r in found).items() if n > 1]
    if twice:
        raise BadSet(f"{folder}/corpus.jsonl has {twice[0]} more than once")
    return tuple(_document(row) for row in found)


def _document(row: Mapping[str, Any]) -> Document:
    title, lang = (str(row.get(key) or "") for key in ("title", "lang"))
    return Document(str(row["_id"]), title, str(row["text"]), lang)


def crossed(found: RetrievalSet, other: Path) -> RetrievalSet:
    """The same queries against the corpus of another folder, where the same ids are the same
    documents in another language. Ids that it lacks cannot be found there and are dropped, and with
    them the queries that have no others."""
    documents = documents_of(other)
    there = {d.id for d in documents}
    kept = {query: ids & there for query, ids in found.relevant.items()}
    relevant = {query: ids for query, ids in kept.items() if ids}
    before, after = (sum(map(len, r.values())) for r in (found.relevant, relevant))
    dropped = Counter({
        "relevant documents that the other corpus lacks, dropped": before - after,
        "queries without any other relevant document, dropped": len(kept) - len(relevant),
    })  # fmt: skip
    name = f"{found.name} against {'/'.join(other.resolve().parts[-2:])}"
    return replace(
        found,
        name=name,
        documents=documents,
        queries=_those(found.queries, relevant),
        relevant=relevant,
        notes={**found.notes, **+dropped},
    )


def limited(found: RetrievalSet, count: int) -> RetrievalSet:
    """So many of its queries, spread evenly: neighbours often ask about the same document."""
    ids = list(found.relevant)
    if count >= len(ids):
        return found
    chosen = {ids[n * len(ids) // count] for n in range(count)}
    relevant = {query: found.relevant[query] for query in ids if query in chosen}
    return replace(found, queries=_those(found.queries, relevant), relevant=relevant)


def _those(queries: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    return {id_: queries[id_] for id_ in wanted if id_ in queries}


def _qrels(path: Path) -> dict[str, frozenset[str]]:
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in _text(path).splitlines()[1:]:
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 3:
            raise BadSet(f"{path}: not query, document, relevance: {line[:80]!r}")
        if float(parts[2]) > 0:
            relevant[parts[0]].add(parts[1])
    if not relevant:
        raise BadSet(f"{path} names no relevant document")
    return {query: frozenset(ids) for query, ids in relevant.items()}


def rows(path: Path, keys: frozenset[str]) -> list[dict[str, Any]]:
    """The lines of a file, each with at least these keys.

    Raises:
        BadSet: it cannot be read, or a line is something else.
    """
    # Not splitlines(): a text may hold U+2028, which ends no line of JSON.
    lines = _text(path).split("\n")
    try:
        found = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise BadSet(f"{path}: {error}") from error
    for row in found:
        if not isinstance(row, dict) or not keys <= row.keys():
            raise BadSet(f"{path}: a row without {' and '.join(sorted(keys))}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadSet(f"{path}: {error}") from error
