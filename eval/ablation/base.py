"""Bases and the questions about them: passages of the real chunker, and which of them are right."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.ablation.passages import Passage, Text, passages_of
from eval.labelled import RETRIEVAL, Base, Query, at, read
from eval.retrieval.sets import RetrievalSet, crossed
from eval.retrieval.sets import read as read_set
from services.indexer.chunker import Reader

PARALLEL = (
    ("xquad/en", "", True),
    ("xquad/de", "", True),
    ("xquad/de", "xquad/en", True),
    ("gnome_help/de", "", True),
    ("gnome_help/ru", "", True),
    ("gnome_help/sr-Latn", "", True),
    ("gnome_help/hr", "gnome_help/en", True),
    ("progit/bg", "", False),
    ("progit/mk", "", False),
)
"""Sets of others: questions, corpus if it is another one, whether titles are searched (not where
the questions are the titles)."""


@dataclass(frozen=True)
class Asked:
    """A question; `right`: numbers of the passages that answer it, none for an unanswerable one."""

    id: str
    text: str
    right: frozenset[int]
    kind: str = ""
    lang: str = ""
    held_out: bool = False


@dataclass(frozen=True)
class Bench:
    """A base and its questions."""

    name: str
    passages: tuple[Passage, ...]
    asked: tuple[Asked, ...]

    @property
    def answerable(self) -> list[Asked]:
        return [a for a in self.asked if a.right]

    def half(self, name: str) -> "Bench":
        """`tuning`, `held-out`, or all of it."""
        kept = [a for a in self.asked if name == "all" or a.held_out == (name == "held-out")]
        return Bench(f"{self.name}, {name}", self.passages, tuple(kept))


def own(reader: Reader, *, limit: int = 500, root: Path = RETRIEVAL) -> Bench:
    """Our labelled questions on all documents of their base, all languages together."""
    base = Base(root)
    texts = (
        Text(d.name, _titled(d.title, d.text) if ":" in d.name else d.text)
        for d in base.documents.values()
    )
    passages = tuple(passages_of(texts, reader, limit=limit))
    of_document = _by_document(passages)
    asked = (_asked(query, base, passages, of_document) for query in read())
    return Bench("own queries", passages, tuple(asked))


def _asked(
    query: Query, base: Base, passages: Sequence[Passage], of_document: dict[str, list[int]]
) -> Asked:
    right = {
        number
        for target in base.answers(query)
        for number in of_document[target.document]
        if not target.sections or _under(passages[number], target.sections)
    }
    return Asked(
        query.id, query.query, frozenset(right), query.kind, query.lang, query.held_out
    )  # fmt: skip


def _under(passage: Passage, labels: Iterable[str]) -> bool:
    return any(at(label, heading) for label in labels for heading in passage.heading_path)


def others(reader: Reader, only: str = "", root: Path = RETRIEVAL) -> Iterator[Bench]:
    """The sets of `PARALLEL`, each on a base of its own."""
    for name, corpus, title in PARALLEL:
        found = read_set(root / name)
        if corpus:
            found = crossed(found, root / corpus)
        if only in found.name:
            yield _of_set(found, reader, title=title)


def _of_set(found: RetrievalSet, reader: Reader, *, title: bool) -> Bench:
    texts = (Text(d.id, d.markdown(title=title)) for d in found.documents)
    passages = tuple(passages_of(texts, reader))
    of_document = _by_document(passages)
    asked = (
        Asked(id_, text, frozenset(n for d in found.relevant[id_] for n in of_document[d]))
        for id_, text in found.queries.items()
    )
    return Bench(found.name, passages, tuple(asked))


def _by_document(passages: Sequence[Passage]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        found[passage.document].append(number)
    return found


def _titled(title: str, text: str) -> str:
    return f"# {' '.join(title.split())}\n\n{text}\n"
