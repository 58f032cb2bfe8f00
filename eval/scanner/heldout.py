"""The set that no rule and no model was made with: `eval/data/scanner_heldout.jsonl`.

Rows `{id, kind, lang, text}` in nine variants with parallel ids. `task`: a plain request to a
model; `override`: override, exfiltration, role play, each with its `theme`; `near-miss`: honest
sentences that look similar; `host`: mails and tables. Attacks are put into hosts of their language,
the file's own and honest texts of evaldata.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from eval.scanner.disguise import disguised
from eval.scanner.items import Item, bare
from eval.scanner.sets import Row, rows

FILE = Path(__file__).parents[1] / "data" / "scanner_heldout.jsonl"
VARIANTS = ("en", "de", "ru", "bg", "sr-Cyrl", "sr-Latn", "mk", "hr", "sl")
PLACES = ("start", "middle", "end")
CYRILLIC = frozenset({"ru", "bg", "sr-Cyrl", "mk"})
_HOST_CHARACTERS = (600, 3000)
_HOSTS = 60


def held_out(kind: str) -> Iterator[Row]:
    """Rows of one kind."""
    return (row for row in rows(FILE) if row["kind"] == kind)


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


def buried(data: Path, kind: str) -> Iterator[Item]:
    """Each attack of a kind at each place of a host of its language."""
    homes = hosts(data)
    for number, row in enumerate(held_out(kind)):
        texts = homes[row["lang"]]
        for offset, place in enumerate(PLACES):
            host = texts[(3 * number + offset) % len(texts)]
            text = inserted(host, row["text"], place)
            groups = {"lang": row["lang"], "place": place, "attack": row["id"]}
            groups["theme"] = row.get("theme", kind)
            yield bare(f"{row['id']}-{place}", 1, text, **groups)


def alone(kind: str, label: int) -> Iterator[Item]:
    """Each row of a kind as a text of its own."""
    for row in held_out(kind):
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


def harmless(data: Path) -> Iterator[Item]:
    """The hosts themselves, and each near miss in a host."""
    homes = hosts(data)
    for variant, texts in homes.items():
        for number, text in enumerate(texts):
            yield bare(f"host-{variant}-{number}", 0, text, lang=variant, source="host alone")
    for number, row in enumerate(held_out("near-miss")):
        texts = homes[row["lang"]]
        text = inserted(texts[number % len(texts)], row["text"], PLACES[number % 3])
        yield bare(f"{row['id']}-in-host", 0, text, lang=row["lang"], source="near miss in a host")
