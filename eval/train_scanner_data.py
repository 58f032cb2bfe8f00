"""What the learned layer is trained and tried on: honest documents, orders, documents with orders.

All foreign text is read where it lies (`../shared/evaldata`, the packages and catalogues of this
machine) and never stored here. Only `data/scanner_train.jsonl` is our own.
"""

import gettext
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.language_sources import cyrillic
from services.scanner.learned.reading import has_words, squeezed
from services.scanner.learned.windows import windows

DATA = Path(__file__).parents[1] / "../shared/evaldata"
OWN = Path(__file__).parent / "data/scanner_train.jsonl"
PHRASES = Path(__file__).parent / "data/scanner_phrases.jsonl"
WRITERS = Path(__file__).parent / "data"
"""Where `scanner_own_<writer>.jsonl` are: a line is a text in English and some other languages."""

LANGUAGES = ("en", "de", "ru", "bg", "sr-Cyrl", "sr-Latn", "mk", "hr", "sl")

REQUESTS = frozenset({"task", "question", "oblique"})
"""Kinds of own orders that need not speak to a model: out of place only in a document."""

PLAIN_CATEGORIES = frozenset({
    "Information Retrieval", "Content Creation", "Learning and Tutoring", "Language Translation",
    "Programming Help", "Task Automation", "Business Intelligence", "Conversational Agent",
    "Research Assistance", "Sentiment Analysis",
})  # fmt: skip
"""The same of BIPIA's."""

Row = dict[str, Any]


@dataclass
class Doc:
    """A document as windows; `host` is equal for documents that share their honest part."""

    set: str
    language: str
    host: str
    label: int
    category: str = ""
    id: str = ""
    texts: list[str] = field(default_factory=list)
    alone: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    """An order to a model; parallel ones in other languages share their `group`.

    plain: a request that any reader could be given, and no word about a model's own work.
    """

    language: str
    group: str
    plain: bool
    texts: tuple[str, ...]
    source: str
    kind: str


def fold_of(name: str, folds: int) -> int:
    """A stable share: 0 to `folds` - 1."""
    return zlib.crc32(name.encode()) % folds


def rows(path: Path) -> list[Row]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def document(text: str, **about: Any) -> Doc:
    """Cut a text as the scanner does."""
    doc = Doc(**about)
    for window in windows(text):
        said = text[window.start : window.end]
        if has_words(said):
            doc.texts.append(squeezed(said))
            doc.alone.append(window.alone)
    return doc


def own() -> list[Row]:
    """Our own sentences: {id, text, label, language, kind}; parallel ones share `id` up to the dot.

    The rows of `scanner_train.jsonl` and `scanner_phrases.jsonl`, then those of the other writers.
    """
    found = [row for row in (*rows(OWN), *rows(PHRASES)) if row["kind"] != "document"]
    for group in written():
        if not group["id"].startswith(DOCUMENTS):
            found += _variants(group)
    return found


DOCUMENTS = "m"
"""The writer whose texts are whole documents."""


def written() -> Iterator[Row]:
    """The groups of the writers: {id, kind, label, en, and some of the other languages}."""
    for path in sorted(WRITERS.glob("scanner_own_*.jsonl")):
        yield from rows(path)


def _variants(group: Row) -> Iterator[Row]:
    """One row for each language."""
    for language, text in texts_of(group).items():
        about = {"kind": group["kind"], "label": group["label"], "language": language}
        yield about | {"id": f"{group['id']}.{language}", "text": text}


def texts_of(group: Row) -> dict[str, str]:
    """The texts of a group by language; Serbian in both scripts."""
    texts = {k: v for k, v in group.items() if k not in ("id", "kind", "label", "sr")}
    if "sr" in group:
        texts |= {"sr-Latn": group["sr"], "sr-Cyrl": in_cyrillic(group["sr"])}
    return texts


_SPOKEN = re.compile(r"(?<![\w@/\\.:_<&#%$`=-])[^\W\d_]+(?![\w@/\\:_&=`-]|\.\w)")
_NO_SERBIAN = re.compile(r"[qwxyäöüß]", re.IGNORECASE)


def in_cyrillic(text: str) -> str:
    """Serbian in Cyrillic letters; addresses, names with other letters and code stay."""
    return _SPOKEN.sub(lambda found: _cyrillic_word(found[0]), text)


def _cyrillic_word(word: str) -> str:
    if _NO_SERBIAN.search(word):
        return word
    small = cyrillic(word.lower())
    if word.isupper() and len(word) > 1:
        return small.upper()
    return small.capitalize() if word[0].isupper() else small


def _own_documents(_data: Path) -> Iterator[Doc]:
    """Our own honest documents, each in nine variants, which share their `host`."""
    for row in rows(OWN):
        if row["kind"] == "document":
            host = row["id"].partition(".")[0]
            yield document(row["text"], set="own", language=row["language"], host=host, label=0)
    for group in written():
        if group["id"].startswith(DOCUMENTS):
            for row in _variants(group):
                yield document(
                    row["text"], set="written", language=row["language"], host=group["id"], label=0
                )


def orders(data: Path) -> list[Order]:
    """Our own orders in nine variants, and BIPIA's in English."""
    found = [
        Order(
            r["language"],
            r["id"].partition(".")[0],
            r["kind"] in REQUESTS,
            tuple(document(r["text"], set="", language="", host="", label=1).texts),
            "own",
            r["kind"],
        )
        for r in own()
        if r["label"]
    ]
    for half in ("train", "test"):
        for row in rows(data / f"injection/bipia/attacks_{half}.jsonl"):
            doc = document(row["text"], set="", language="en", host="", label=1)
            texts = doc.texts[:1] if row["family"] == "code" else doc.texts
            plain = row["category"] in PLAIN_CATEGORIES and not (
                "answer" in row["text"] or "response" in row["text"]
            )
            found.append(
                Order(
                    "en",
                    row["id"],
                    plain,
                    tuple(texts),
                    f"bipia-{half}",
                    row["category"],
                )
            )
    return found


def bipia(data: Path) -> list[Doc]:
    """E-mails and tables with an attack, and without; `host` is the id of the clean twin."""
    found = rows(data / "injection/bipia/documents_test.jsonl")
    clean = {squeezed(r["text"]): r["id"] for r in found if not r["label"]}
    docs = []
    for row in found:
        bare = squeezed(
            row["text"].replace(row["payload"] or "", " ", 1) if row["label"] else row["text"]
        )
        docs.append(
            document(
                row["text"], set="bipia", language="en", host=clean.get(bare, bare[:60]),
                label=row["label"], category=row.get("category") or "", id=row["id"],
            )
        )  # fmt: skip
    return docs


def labelled(data: Path, name: str, kind: str | None = None) -> list[Doc]:
    """A detection set; one document a row."""
    return [
        document(
            r["text"], set=name.partition("/")[0], host=r["id"], label=r["label"],
            language=r.get("lang") or "en", category=r.get("why") or r.get("source") or "",
            id=r["id"],
        )
        for r in rows(data / f"injection/{name}.jsonl")
        if kind in (None, r.get("kind"))
    ]  # fmt: skip


def _retrieval(data: Path, folder: str, most: int) -> Iterator[Doc]:
    for path in sorted((data / "retrieval" / folder).rglob("*.jsonl")):
        if path.stem.startswith(("quer", "changes", "manifest")):
            continue
        variant = next((p for p in path.parts if p.startswith("sr-")), None)
        found = sorted(rows(path), key=lambda r: zlib.crc32(str(r.get("_id")).encode()))
        for row in found[:most]:
            title = row.get("title") or row.get("heading") or ""
            yield document(
                f"{title}\n\n{row['text']}", set=folder, label=0,
                language=variant or {"sr": "sr-Cyrl"}.get(row["lang"], row["lang"]),
                host=f"{path.relative_to(data)}#{row.get('_id')}",
            )  # fmt: skip


def _laws(data: Path, folder: str, every: int) -> Iterator[Doc]:
    for path in sorted((data / "retrieval" / folder).rglob("*.md"))[::every]:
        language = path.stem if folder == "udhr" else "de"
        yield document(
            path.read_text("utf-8"), set=folder, language=language, label=0,
            host=path.parent.name + path.stem,
        )  # fmt: skip


def _grouped(name: str, found: Iterable[Row], size: int, most: int = 10_000) -> Iterator[Doc]:
    """Short texts of one language, put together to documents."""
    by_language: dict[str, list[str]] = {}
    for row in found:
        by_language.setdefault(row["lang"], []).append(row["text"])
    for language, texts in by_language.items():
        for start in range(0, min(len(texts), most), size):
            yield document(
                "\n".join(texts[start : start + size]), set=name, label=0,
                language={"sr": "sr-Cyrl"}.get(language, language),
                host=f"{name}-{language}-{start}",
            )  # fmt: skip


def _exams(data: Path) -> Iterator[Doc]:
    for path in sorted((data / "retrieval/exams_parallel").glob("questions_*.jsonl")):
        yield from _grouped("exams", rows(path), 25)


def _news(data: Path) -> Iterator[Doc]:
    found = [r for r in rows(data / "lid/lingua/sentences.jsonl") if r.get("accepted")]
    yield from _grouped("news", found, 15, 300)


def _web(data: Path) -> Iterator[Doc]:
    import trafilatura

    for path in sorted((data / "parsing/trafilatura/html").iterdir()):
        text = trafilatura.extract(
            path.read_bytes().decode("utf-8", "replace"), include_comments=True,
            include_tables=True, favor_recall=True,
        )  # fmt: skip
        if text and len(text) > 300:
            yield document(text[:8_000], set="web", language="en", host=path.name, label=0)


def _docling(data: Path) -> Iterator[Doc]:
    found = [
        *(data / "parsing/docling").rglob("*.md"),
        *(data / "parsing/docling/csv").glob("*.csv"),
    ]
    for path in sorted(found):
        text = path.read_text("utf-8", errors="replace")
        if len(text) > 200:
            yield document(text[:8_000], set="docling", language="en", host=path.stem, label=0)


CATALOGUES = Path("/usr/share/locale")
_LOCALES = {"sr": "sr-Cyrl", "sr@latin": "sr-Latn"}


def _catalogues(_data: Path) -> Iterator[Doc]:
    """Strings of programs from Debian's catalogues, 40 a document."""
    for locale in ("de", "ru", "bg", "sr", "sr@latin", "mk", "hr", "sl"):
        paths = sorted(
            (CATALOGUES / locale / "LC_MESSAGES").glob("*.mo"),
            key=lambda p: zlib.crc32(p.name.encode()),
        )
        made = 0
        for path in paths:
            with path.open("rb") as handle:
                catalogue = gettext.GNUTranslations(handle)._catalog  # type: ignore[attr-defined]
            pairs = [
                (k, v) for k, v in catalogue.items()
                if isinstance(k, str) and isinstance(v, str) and k and len(v) > 20
            ]  # fmt: skip
            for start in range(0, min(len(pairs), 240), 40):
                part = pairs[start : start + 40]
                about = {"set": "catalogues", "label": 0, "host": f"{path.stem}-{start}"}
                yield document(
                    "\n".join(v for _, v in part), language=_LOCALES.get(locale, locale), **about
                )
                if locale == "de":
                    yield document("\n".join(k for k, _ in part), language="en", **about)
                made += 1
            if made >= 12:
                break


def _readmes(_data: Path) -> Iterator[Doc]:
    """The long descriptions of the installed packages."""
    import importlib.metadata as installed

    for package in sorted(installed.distributions(), key=lambda d: d.name or ""):
        text = package.read_text("METADATA") or ""
        text = text.partition("\n\n")[2]
        if len(text) > 400:
            yield document(
                text[:12_000], set="readmes", language="en", host=str(package.name), label=0
            )


@dataclass(frozen=True)
class Source:
    """A set of honest documents."""

    name: str
    licence: str
    read: Callable[[Path], Iterator[Doc]]


SOURCES: Sequence[Source] = (
    Source("own documents", "Apache-2.0", _own_documents),
    Source("gnome_help", "CC BY-SA 3.0", lambda d: _retrieval(d, "gnome_help", 70)),
    Source("libreoffice_help", "MPL-2.0", lambda d: _retrieval(d, "libreoffice_help", 60)),
    Source("progit", "CC BY-NC-SA 3.0", lambda d: _retrieval(d, "progit", 60)),
    Source("exams wiki", "CC BY-SA 4.0", lambda d: _retrieval(d, "exams_wiki_distractors", 40)),
    Source("exams", "CC BY-SA 4.0", _exams),
    Source("xquad", "CC BY-SA 4.0", lambda d: _retrieval(d, "xquad", 60)),
    Source("gdpr", "EU, 2011/833/EU", lambda d: _retrieval(d, "gdpr", 99)),
    Source("german_laws", "public domain", lambda d: _laws(d, "german_laws", 1)),
    Source("law_versions", "public domain", lambda d: _laws(d, "law_versions", 4)),
    Source("udhr", "public", lambda d: _laws(d, "udhr", 1)),
    Source("news", "Apache-2.0 (Leipzig corpora)", _news),
    Source("web", "of their publishers, read only", _web),
    Source("docling", "MIT", _docling),
    Source("catalogues", "of the Debian packages, read only", _catalogues),
    Source("readmes", "of the installed packages, read only", _readmes),
)


def honest(data: Path) -> list[Doc]:
    """All honest documents to train on, without the detection sets' own."""
    return [doc for source in SOURCES for doc in source.read(data) if doc.texts]


NEAR_SET = "near"
"""The name of the sentences that look like orders."""


@dataclass(frozen=True)
class Material:
    """What the layer is trained on."""

    docs: Sequence[Doc]
    orders: Sequence[Order]
    negatives: Sequence[Doc]
    """Harmless sentences that look like orders."""
    questions: Sequence[Doc]
    """Harmless single requests, which are no orders where they are the whole document."""
    attacks: Sequence[Doc]
    """Documents with an attack in one of their windows, which is not known."""

    def texts(self) -> list[str]:
        """All windows."""
        docs = [*self.docs, *self.negatives, *self.questions, *self.attacks]
        return [t for d in docs for t in d.texts] + [t for o in self.orders for t in o.texts]


def part_of(material: Material, fold: int, folds: int, *, keep: bool = True) -> Material:
    """The fold, or all but the fold: by host document, by group of parallel sentences."""

    def inside(name: str) -> bool:
        return (fold_of(f"{folds}{name}", folds) == fold) is keep

    return Material(
        [d for d in material.docs if inside(d.host)],
        [o for o in material.orders if inside(o.group)],
        [d for d in material.negatives if inside(d.host)],
        [d for d in material.questions if inside(d.host)],
        [d for d in material.attacks if inside(d.host)],
    )


def gather(data: Path) -> tuple[Material, list[Doc]]:
    """Everything to train on, and the documents that are only tried."""
    prompts = labelled(data, "deepset_prompt_injections/train")
    indirect = labelled(data, "cyberseceval/prompt_injection_en", "document")
    mixed = labelled(data, "piguard_valid/valid")
    # Its other attacks are BIPIA's, some of them from the half that must stay unseen.
    pint = [d for d in mixed if d.label and d.category.startswith("PINT")]
    with_attacks = bipia(data)
    material = Material(
        docs=[*honest(data), *(d for d in with_attacks if not d.label)],
        orders=orders(data),
        negatives=[
            document(
                r["text"], set=NEAR_SET, language=r["language"], label=0,
                host=r["id"].partition(".")[0],
            )
            for r in own()
            if not r["label"]
        ],
        questions=[d for d in prompts if not d.label and d.texts],
        attacks=[d for d in [*prompts, *indirect, *pint] if d.label and d.texts],
    )  # fmt: skip
    known = {d.id for d in material.attacks}
    tests = [
        *(d for d in with_attacks if d.label),
        *labelled(data, "garak_latent/documents"),
        *labelled(data, "benign_hard/documents"),
        *(d for d in mixed if d.id not in known),
    ]
    return material, [d for d in tests if d.texts]
