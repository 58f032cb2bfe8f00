"""Two sets that no rule and no model was made with, by two writers: `eval/data/scanner_heldout*`.

Rows `{id, kind, lang, text}` in nine variants with parallel ids. `task`: a plain request to a
model; `override`: override, exfiltration, role play and the like, each with its `theme`;
`near-miss`: honest sentences that look similar; `host`: mails and tables, in the first set. Attacks
are put into hosts of their language, the first set's own and honest texts of evaldata.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from eval.scanner.disguise import disguised
from eval.scanner.items import Item, bare
from eval.scanner.sets import Row, rows
from eval.train_scanner_data import texts_of

FOLDER = Path(__file__).parents[1] / "data"
FIRST, SECOND = FOLDER / "scanner_heldout.jsonl", FOLDER / "scanner_heldout2.jsonl"
VARIANTS = ("en", "de", "ru", "bg", "sr-Cyrl", "sr-Latn", "mk", "hr", "sl")
PLACES = ("start", "middle", "end")
CYRILLIC = frozenset({"ru", "bg", "sr-Cyrl", "mk"})
_HOST_CHARACTERS = (600, 3000)
_HOSTS = 60
_BOOK = 150_000
_ATTACKED_BOOKS = 3


def held_out(kind: str, file: Path = FIRST) -> Iterator[Row]:
    """Rows of one kind."""
    found = rows(FIRST) if file == FIRST else _second()
    return (row for row in found if row["kind"] == kind)


def _second() -> Iterator[Row]:
    """The rows of the second set, whose lines hold all languages."""
    for group in rows(SECOND):
        kind = "near-miss" if not group["label"] else "task"
        if group["label"] and group["kind"] != "task":
            kind = "override"
        texts = texts_of(group)
        about = {"kind": kind, "theme": group["kind"]}
        for variant in VARIANTS:
            yield {
                "id": f"{group['id']}.{variant}",
                "lang": variant,
                "text": texts[variant],
            } | about


def hosts(data: Path) -> dict[str, list[str]]:
    """Honest texts for each variant: ours first, then those of evaldata, shuffled by a seed."""
    found: dict[str, list[str]] = defaultdict(list)
    for variant in VARIANTS:
        own = [row["text"] for row in held_out("host") if row["lang"] == variant]
        foreign = [t for t in _foreign(data, variant) if _fits(t)]
        random.Random(variant).shuffle(foreign)
        found[variant] = own + foreign[: _HOSTS - len(own)]
    return found


def _fits(text: str) -> bool:
    return _HOST_CHARACTERS[0] <= len(text) <= _HOST_CHARACTERS[1]


def _foreign(data: Path, variant: str) -> Iterator[str]:
    """Help pages, encyclopedia, newspapers, human rights: what there is of a variant."""
    plain = {"sr-Cyrl": "sr"}.get(variant, variant)
    retrieval = data / "retrieval"
    for pattern in (
        f"gnome_help/{variant}/corpus.jsonl", f"exams_wiki_distractors/{plain}.jsonl",
        f"libreoffice_help/{variant}/corpus.jsonl",
        f"xquad/{variant}/corpus.jsonl", f"progit/{variant}/corpus.jsonl",
    ):  # fmt: skip
        for path in sorted(retrieval.glob(pattern)):
            for row in rows(path):
                yield f"{row.get('title') or ''}\n\n{row['text']}".strip()
    for path in sorted(retrieval.glob(f"udhr/{variant}.sections.jsonl")):
        texts = [row["text"] for row in rows(path)]
        for at in range(0, len(texts) - 4, 4):
            yield "\n\n".join(texts[at : at + 4])


def inserted(host: str, attack: str, place: str) -> str:
    """The attack as a paragraph of the host: before it, after it, or between its paragraphs."""
    if place == "start":
        return f"{attack}\n\n{host}"
    if place == "end":
        return f"{host}\n\n{attack}"
    paragraphs = host.split("\n\n")
    if len(paragraphs) > 1:
        half = len(paragraphs) // 2
        return "\n\n".join([*paragraphs[:half], attack, *paragraphs[half:]])
    sentences = host.split(". ")
    half = max(1, len(sentences) // 2)
    return ". ".join([*sentences[:half], attack.rstrip("."), *sentences[half:]])


def buried(data: Path, kind: str, file: Path = FIRST) -> Iterator[Item]:
    """Each attack of a kind at each place of a host of its language."""
    homes = hosts(data)
    for number, row in enumerate(held_out(kind, file)):
        texts = homes[row["lang"]]
        for offset, place in enumerate(PLACES):
            host = texts[(3 * number + offset) % len(texts)]
            text = inserted(host, row["text"], place)
            groups = {"lang": row["lang"], "place": place, "attack": row["id"]}
            groups["theme"] = row.get("theme", kind)
            yield bare(f"{row['id']}-{place}", 1, text, **groups)


def in_books(data: Path) -> Iterator[Item]:
    """Books of `_BOOK` characters in each variant, as they are and with attacks of both sets."""
    attacks: dict[str, list[Row]] = defaultdict(list)
    for file in (FIRST, SECOND):
        for row in held_out("override", file):
            attacks[row["lang"]].append(row)
    for variant in VARIANTS:
        book = _book(data, variant)
        yield bare(f"book-{variant}", 0, book, lang=variant, source="book")
        for number in range(_ATTACKED_BOOKS):
            row = attacks[variant][number * len(attacks[variant]) // _ATTACKED_BOOKS]
            place = PLACES[number % len(PLACES)]
            text = inserted(book, row["text"], place)
            yield bare(f"{row['id']}-book", 1, text, lang=variant, place=place)


def _book(data: Path, variant: str) -> str:
    """Honest texts of a variant, shuffled by a seed, one after another."""
    texts = list(_foreign(data, variant))
    random.Random(variant).shuffle(texts)
    sizes = accumulate(map(len, texts))
    return "\n\n".join(text for text, size in zip(texts, sizes, strict=True) if size <= _BOOK)


_VARIANT = re.compile(rf"[-.](?:{'|'.join(VARIANTS)})(?:-[a-z-]+)?$")


def group_of(item: Item) -> str:
    """The name that a text shares with its other variants and places."""
    return _VARIANT.sub("", item.id)


def alone(kind: str, label: int, file: Path = FIRST) -> Iterator[Item]:
    """Each row of a kind as a text of its own."""
    for row in held_out(kind, file):
        yield bare(row["id"], label, row["text"], lang=row["lang"])


def in_disguise(data: Path) -> Iterator[Item]:
    """Each override attack in each disguise, in the middle of a host of its language."""
    homes = hosts(data)
    number = 0
    for row in held_out("override"):
        made = disguised(row["text"], latin=row["lang"] not in CYRILLIC)
        for name, text in made.items():
            texts = homes[row["lang"]]
            number += 1
            whole = inserted(texts[number % len(texts)], text, "middle")
            groups = {"lang": row["lang"], "technique": name, "attack": row["id"]}
            yield bare(f"{row['id']}-{name}", 1, whole, **groups)


def harmless(data: Path, file: Path = FIRST) -> Iterator[Item]:
    """The hosts themselves (with the first set), and each near miss in a host."""
    homes = hosts(data)
    for variant, texts in homes.items() if file == FIRST else ():
        for number, text in enumerate(texts):
            yield bare(f"host-{variant}-{number}", 0, text, lang=variant, source="host alone")
    for number, row in enumerate(held_out("near-miss", file)):
        texts = homes[row["lang"]]
        text = inserted(texts[number % len(texts)], row["text"], PLACES[number % 3])
        yield bare(f"{row['id']}-in-host", 0, text, lang=row["lang"], source="near miss in a host")
