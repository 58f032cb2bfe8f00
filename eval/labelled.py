"""Our own labelled queries, on the documents below `retrieval/`. `python -m eval.labelled` counts.

Kinds: *paraphrase* avoids the section's words; *exact* is a term, number, paragraph sign or
identifier as typed; *cross-lingual* asks in a language in which the base has no such section;
*native* is a plain question in the language of the section; *unanswerable* is close to the base,
which does not answer it. The queries are our words: no sentence of the data is copied.

A label is a document, and for long ones headings of it, any of which is right. Labels hold whatever
the chunker does. `Base.answers` adds the same section in the other languages of its set, which is
as right (an identifier has no language); `halves` splits by a hash of the id.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eval.corpus import EVALDATA
from eval.retrieval.sets import documents_of

QUERIES = Path(__file__).with_name("data") / "retrieval_queries.jsonl"
RETRIEVAL = EVALDATA / "retrieval"
UNANSWERABLE = "unanswerable"
KINDS = ("paraphrase", "exact", "cross-lingual", "native", UNANSWERABLE)
LANGUAGES = ("en", "de", "ru", "bg", "sr-Cyrl", "sr-Latn", "mk", "hr", "sl")
LEAST = 160
LEAST_OF_A_KIND = 30
LEAST_OF_A_LANGUAGE = 12
FILES = ("german_laws/*.md", "udhr/md/*.md")
"""Long documents: one file each, labelled by heading."""
CORPORA = ("gdpr", "gnome_help/*", "libreoffice_help/*", "progit/*")
"""Folders with a `corpus.jsonl`: every row is a document, and one section."""
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.M)


@dataclass(frozen=True, slots=True)
class Target:
    """A document (path below `retrieval/`, or `folder:_id`), and headings of it, or all of it."""

    document: str
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """`also`: other places with the answer. `absent`: patterns that no text of the base has."""

    id: str
    kind: str
    lang: str
    query: str
    document: str
    sections: tuple[str, ...]
    doc_lang: str
    note: str
    also: tuple[Target, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """As labelled: the document first; none if there is no answer."""
        own = (Target(self.document, self.sections),) if self.document else ()
        return own + self.also

    @property
    def held_out(self) -> bool:
        """Never tuned on; decided by the id alone, so that it stays when queries are added."""
        return hashlib.sha256(self.id.encode()).digest()[0] >= 128


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the base as it is to be ingested; `text` is Markdown below its title."""

    name: str
    lang: str
    title: str
    text: str

    @property
    def headings(self) -> list[str]:
        return [found[2] for found in _HEADING.finditer(self.text)]


def read(path: Path = QUERIES) -> list[Query]:
    """Every line of the file; a key that `Query` does not know raises."""
    return [_query(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _query(row: Mapping[str, Any]) -> Query:
    also = tuple(Target(t["document"], tuple(t["sections"])) for t in row.get("also", ()))
    rest = {**row, "sections": tuple(row["sections"]), "absent": tuple(row.get("absent", ()))}
    return Query(**{**rest, "also": also})


def halves(queries: Iterable[Query]) -> tuple[list[Query], list[Query]]:
    """To choose defaults with, and held out."""
    listed = list(queries)
    return [q for q in listed if not q.held_out], [q for q in listed if q.held_out]


def at(label: str, heading: str) -> bool:
    """Whether a heading is the labelled one: `§ 5` is `§ 5 Benennung`, and is not `§ 53`."""
    rest = heading[len(label) :]
    return heading.startswith(label) and not rest[:1].isalnum()


class Base:
    """The documents that the queries are about, all languages together."""

    def __init__(self, root: Path = RETRIEVAL) -> None:
        self._root = root

    @cached_property
    def documents(self) -> dict[str, Document]:
        """By name, in a fixed order."""
        return {d.name: d for d in (*self._files(), *self._rows())}

    def answers(self, query: Query) -> list[Target]:
        """The labels, then the same sections in the other languages of their sets."""
        found = dict.fromkeys(query.targets)
        for target in query.targets:
            found.update(dict.fromkeys(self._parallel(target)))
        return list(found)

    def faults(self, queries: Iterable[Query]) -> list[str]:
        """Labels that name nothing; languages that are not so; what is absent and is there."""
        return [f"{q.id}: {what}" for q in queries for what in self._faults(q)]

    def copied(self, queries: Iterable[Query], words: int = 8) -> list[str]:
        """Ids of queries of which so many words in a row stand in the base."""
        texts = [" ".join(_words(f"{d.title} {d.text}")) for d in self.documents.values()]
        whole = " | ".join(texts)
        return [
            q.id
            for q in queries
            for said in [_words(q.query)]
            if any(
                f" {' '.join(said[n : n + words])} " in whole for n in range(len(said) - words + 1)
            )
        ]

    def _files(self) -> Iterator[Document]:
        for path in sorted(p for pattern in FILES for p in self._root.glob(pattern)):
            name, text = path.relative_to(self._root).as_posix(), path.read_text("utf-8")
            lang = "de" if name.startswith("german_laws/") else path.stem
            title = next((found[2] for found in _HEADING.finditer(text)), path.stem)
            yield Document(name, lang, title, text)

    def _rows(self) -> Iterator[Document]:
        for folder in sorted(p for pattern in CORPORA for p in self._root.glob(pattern)):
            name = folder.relative_to(self._root).as_posix()
            for row in documents_of(folder):
                lang = folder.name if "/" in name else row.lang
                yield Document(f"{name}:{row.id}", lang, row.title, row.text)

    def _parallel(self, target: Target) -> Iterator[Target]:
        """Rows share their ids; the declarations have the same headings in the same order."""
        folder, _, row = target.document.partition(":")
        if row:
            twins = self._twins.get((folder.partition("/")[0], row), ())
            yield from (Target(name) for name in twins)
        elif folder.startswith("udhr/"):
            own = self.documents[folder].headings
            places = [own.index(h) for label in target.sections for h in own if at(label, h)]
            for name, document in self.documents.items():
                if name.startswith("udhr/"):
                    yield Target(name, tuple(document.headings[place] for place in places))

    @cached_property
    def _twins(self) -> dict[tuple[str, str], list[str]]:
        """Names of documents by set and id."""
        found: dict[tuple[str, str], list[str]] = {}
        for name in self.documents:
            folder, _, row = name.partition(":")
            found.setdefault((folder.partition("/")[0], row), []).append(name)
        return found

    def _faults(self, query: Query) -> Iterator[str]:
        wrong = [what for target in query.targets for what in self._unknown(target)]
        yield from wrong
        if query.targets and not wrong:
            if self.documents[query.document].lang != query.doc_lang:
                yield f"{query.document} is not in {query.doc_lang}"
            there = {_spoken(self.documents[t.document].lang) for t in self.answers(query)}
            if query.kind == "cross-lingual" and _spoken(query.lang) in there:
                yield f"the base has it in {query.lang}"
        for pattern in query.absent:
            if found := re.search(pattern, self._whole, re.I):
                yield f"{pattern} is there: {found[0]}"

    def _unknown(self, target: Target) -> Iterator[str]:
        document = self.documents.get(target.document)
        if document is None:
            yield f"no document {target.document}"
            return
        for label in target.sections:
            if sum(at(label, heading) for heading in document.headings) != 1:
                yield f"not one heading {label} in {target.document}"
        if ":" not in target.document and not target.sections:
            yield f"{target.document} is long: name its headings"

    @cached_property
    def _whole(self) -> str:
        return "\n\n".join(f"{d.title}\n{d.text}" for d in self.documents.values())


def faults(queries: Sequence[Query]) -> list[str]:
    """What is wrong with the queries themselves; their labels are checked by `Base.faults`."""
    wrong = [f"{q.id}: {what}" for q in queries for what in _form(q)]
    for field in ("id", "query"):
        many = Counter(getattr(q, field) for q in queries)
        wrong += [f"{field} twice: {value}" for value, count in many.items() if count > 1]
    if len(queries) < LEAST:
        wrong.append(f"{len(queries)} queries, {LEAST} wanted")
    kinds, languages = Counter(q.kind for q in queries), Counter(q.lang for q in queries)
    wrong += [f"{kinds[k]} of {k}" for k in KINDS if kinds[k] < LEAST_OF_A_KIND]
    wrong += [f"{languages[x]} in {x}" for x in LANGUAGES if languages[x] < LEAST_OF_A_LANGUAGE]
    return wrong


def _form(query: Query) -> Iterator[str]:
    if query.kind not in KINDS:
        yield f"kind {query.kind}"
    if query.lang not in LANGUAGES:
        yield f"language {query.lang}"
    if not query.query.strip() or not query.note.strip():
        yield "no text or no note"
    if (query.kind == UNANSWERABLE) == bool(query.targets):
        yield "a target says that there is an answer"
    if (query.kind == UNANSWERABLE) != bool(query.absent):
        yield "what was looked for in vain belongs to the unanswerable, and to them only"
    if query.targets and (query.kind == "cross-lingual") == (query.lang == query.doc_lang):
        yield f"{query.kind} from {query.lang} to {query.doc_lang}"


def _spoken(lang: str) -> str:
    """Without the script: Serbian is one language."""
    return lang.partition("-")[0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def table(queries: Sequence[Query]) -> str:
    """Counts per kind and language; how many are held out."""
    counts = Counter((q.kind, q.lang) for q in queries)
    lines = [
        f"| {'kind':13} | {' | '.join(f'{x:>7}' for x in LANGUAGES)} |   all | held out |",
        f"|{'-' * 15}|{'|'.join('-' * 9 for _ in LANGUAGES)}|-------|----------|",
    ]
    for name, kinds in (*((k, (k,)) for k in KINDS), ("all", KINDS)):
        cells = [sum(counts[k, x] for k in kinds) for x in LANGUAGES]
        held = sum(q.held_out for q in queries if q.kind in kinds)
        row = " | ".join(f"{cell:7}" for cell in cells)
        lines.append(f"| {name:13} | {row} | {sum(cells):5} | {held:8} |")
    return "\n".join(lines)


def main() -> None:
    """The table; then what is wrong, if anything is."""
    queries = read()
    print(table(queries))
    wrong = faults(queries)
    if RETRIEVAL.exists():
        base = Base()
        wrong += base.faults(queries) + [f"{q}: copied" for q in base.copied(queries)]
        print(f"{len(base.documents)} documents")
    else:
        print(f"labels are not checked: {RETRIEVAL} is not there")
    print("\n".join(wrong) or "no faults")


if __name__ == "__main__":
    main()
