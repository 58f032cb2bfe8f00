"""The labelled injection sets and the honest texts of evaluation data, as items."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from eval.scanner.items import Item, bare

Row = dict[str, Any]

LABELLED: dict[str, tuple[str, tuple[str, ...]]] = {
    "obfuscated": ("obfuscated/documents", ("technique", "host_lang")),
    "garak_latent": ("garak_latent/documents", ("source",)),
    "bipia": ("bipia/documents_test", ("task", "position", "category")),
    "cyberseceval": ("cyberseceval/prompt_injection_en", ("injection_type", "category")),
    "deepset": ("deepset_prompt_injections/train", ("language",)),
    "piguard": ("piguard_valid/valid", ("source",)),
    "trojan_source": ("trojan_source/files", ("technique",)),
    "benign_hard": ("benign_hard/documents", ("about", "lang")),
}
"""Name, file below `injection/`, and by what it is split."""


def rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, filter(str.strip, lines))


def labelled(data: Path, name: str) -> Iterator[Item]:
    """The rows of one set."""
    file, groups = LABELLED[name]
    for row in rows(data / "injection" / f"{file}.jsonl"):
        known = {g: str(_GROUPS[g](row) if g in _GROUPS else row.get(g, "–")) for g in groups}
        yield bare(row["id"], row["label"], row["text"], **known)


def _about(row: Row) -> str:
    """Texts about injection quote attacks, and may be reviewed."""
    why = row["why"]
    about = any(word in why for word in ("attack", "inject", "quote", "trojan"))
    return "about injection" if about else "anything else"


def _language(row: Row) -> str:
    """Of a row that does not say so itself, as the knowledge base would name it."""
    found = language_of(row["text"])
    return found if found in ("en", "de") else "other"


_GROUPS: dict[str, Callable[[Row], str]] = {"about": _about, "language": _language}


@cache
def language_of(text: str) -> str:
    """ISO 639-1, or `unknown`."""
    from kernel.language import detect

    return detect(text).code


HONEST_ROWS = (
    "gnome_help", "libreoffice_help", "progit", "exams_wiki_distractors", "gdpr", "german_laws",
    "xquad", "udhr", "exams_parallel",
)  # fmt: skip
HONEST_FILES = ("german_laws", "law_versions", "udhr")


def honest(data: Path) -> Iterator[tuple[str, Item]]:
    """(set, item) of the texts for retrieval: documents, their queries, whole laws."""
    for name in HONEST_ROWS:
        for path in sorted((data / "retrieval" / name).rglob("*.jsonl")):
            for number, row in enumerate(rows(path)):
                text = f"{row.get('title') or ''}\n\n{row.get('text') or ''}".strip()
                if text:
                    yield name, bare(f"{path.stem}-{number}", 0, text)
    for name in HONEST_FILES:
        for path in sorted((data / "retrieval" / name).rglob("*.md")):
            yield f"{name}, whole", bare(path.stem, 0, path.read_text("utf-8"))
