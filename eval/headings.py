"""Headings found, with their levels, in laws of eight languages. `python -m eval.headings`.

Truth is made of what the text has: the `#` of Markdown, the `id` and `class` of HTML. The marks are
then taken off, or flattened, and the converter has to find them again. Without `../shared/evaldata`
only the small laws of `eval/laws` are measured.
"""

import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from contracts.artifacts import BodyMeta, ParsedDocument
from eval.corpus import EVALDATA
from kernel.media import HTML, MARKDOWN, PLAIN
from services.converter.domain import canonical
from services.converter.form import LONGEST_HEADING
from services.converter.parsing.text import parse_text

LAWS = Path(__file__).with_name("laws")
RETRIEVAL = EVALDATA / "retrieval"


class Heading(NamedTuple):
    level: int
    text: str


class Case(NamedTuple):
    """A parse and the headings that its body should have; a title above the law is not counted."""

    name: str
    language: str
    markdown: str
    media_type: str
    truth: list[Heading]


class Score(NamedTuple):
    """Headings right, given and wanted; `levels`: those of the right ones with a right level."""

    right: int
    given: int
    wanted: int
    levels: int

    def __add__(self, other: tuple[object, ...]) -> "Score":
        assert isinstance(other, Score)
        return Score(*(a + b for a, b in zip(tuple(self), tuple(other), strict=True)))

    @property
    def precision(self) -> float:
        return self.right / self.given if self.given else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 1.0

    @property
    def level(self) -> float:
        return self.levels / self.right if self.right else 1.0


def headings(markdown: str) -> list[Heading]:
    """As CommonMark has them; a paragraph over a rule is none if it is long or of many lines."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(markdown)
    found = [
        Heading(int(opening.tag[1:]), inline.content)
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open" and opening.level == 0
    ]
    return [h for h in found if 0 < len(h.text) <= LONGEST_HEADING and "\n" not in h.text]


def score(given: Sequence[Heading], wanted: Sequence[Heading]) -> Score:
    """Headings matched in order by their letters and digits; levels relative to the commonest."""
    keys = [[re.sub(r"[\W_]+", "", h.text).lower() for h in hs] for hs in (given, wanted)]
    blocks = SequenceMatcher(a=keys[0], b=keys[1], autojunk=False).get_matching_blocks()
    pairs = [(given[b.a + n], wanted[b.b + n]) for b in blocks for n in range(b.size)]
    offsets = [a.level - b.level for a, b in pairs]
    common = max(set(offsets), key=offsets.count) if offsets else 0
    return Score(len(pairs), len(given), len(wanted), offsets.count(common))


def scored(case: Case) -> Score:
    """Of the canonical body; the title is taken out on both sides."""
    meta = BodyMeta(title="", language=case.language, media_type=case.media_type)
    parsed = ParsedDocument(markdown=case.markdown, meta=meta)
    body = canonical(parsed, "x").body
    title = next((h.text for h in headings(case.markdown) if h.level == 1), None)
    given = [h for h in headings(body) if h.text != title]
    return score(given, [h for h in case.truth if h.text != title])


# --- cases ------------------------------------------------------------------------------------


def _bare(markdown: str) -> str:
    return re.sub(r"^#{1,6} +", "", markdown, flags=re.M)


def _wrapped(text: str) -> str:
    """As a plain text file: no line above 78 letters."""
    return "\n".join(textwrap.fill(line, 78) for line in text.split("\n"))


def _flat(markdown: str) -> str:
    return re.sub(r"^#{2,6} ", "## ", markdown, flags=re.M)


def _upper_only(markdown: str) -> str:
    """Only the highest parts keep their marks, as in pages that style nothing else."""
    return re.sub(r"^#{3,6} ", "", markdown, flags=re.M)


VARIANTS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("text", PLAIN, _bare),
    ("wrapped", PLAIN, lambda text: _wrapped(_bare(text))),
    ("flat", MARKDOWN, _flat),
    ("upper", MARKDOWN, _upper_only),
    ("kept", MARKDOWN, lambda text: text),
)


def _variants(name: str, language: str, markdown: str) -> Iterator[Case]:
    truth = [h for h in headings(markdown) if h.level > 1]
    for variant, media_type, change in VARIANTS:
        yield Case(f"{name} {variant}", language, change(markdown), media_type, truth)


def laws() -> Iterator[Case]:
    """Our own: titles on the number's line, below it, below it without blank lines, in bold."""
    for path in sorted(LAWS.glob("*.md")):
        text = path.read_text("utf-8")
        one_line = text.replace(" | ", " ")
        below = re.sub(r"^(#+ .*?) \| (.*)$", r"\1\n\n\2", text, flags=re.M)
        truth = [h for h in headings(one_line) if h.level > 1]
        yield from _variants("laws same line", path.stem, one_line)
        for variant, media_type, markdown in (
            ("next line text", PLAIN, _bare(below)),
            ("next line wrapped", PLAIN, _wrapped(_bare(below))),
            ("next line dense", PLAIN, re.sub(r"\n\n+", "\n", _bare(below))),
            ("next line flat", MARKDOWN, _flat(below)),
            ("bold", HTML, re.sub(r"^#{2,6} (.*)$", r"**\1**", below, flags=re.M)),
            ("indented", PLAIN, re.sub(r"^#{2,6} ", " " * 30, one_line, flags=re.M)),
        ):
            yield Case(f"laws {variant}", path.stem, markdown, media_type, truth)


def udhr() -> Iterator[Case]:
    for path in sorted((RETRIEVAL / "udhr" / "md").glob("*.md")):
        yield from _variants("udhr", path.stem, path.read_text("utf-8"))


def german_laws() -> Iterator[Case]:
    for folder in ("german_laws", "law_versions"):
        for path in sorted((RETRIEVAL / folder).rglob("*.md")):
            text = parse_text(path.read_bytes(), MARKDOWN).document.markdown
            yield from _variants(folder, "de", text)


def gdpr() -> Iterator[Case]:
    """The Official Journal's page, and its text; truth from the classes of its paragraphs."""
    folder = RETRIEVAL / "gdpr"
    for path in folder.glob("CELEX*.html"):
        from services.converter.parsing.html import parse_html
        from services.converter.settings import ConverterSettings

        data = path.read_bytes()
        parsed = parse_html(data, ConverterSettings().parse_options).document.markdown
        truth = _gdpr_truth(data)
        yield Case("gdpr html", "en", parsed, HTML, truth)
        yield Case("gdpr text", "en", _bare(parsed), PLAIN, truth)
        yield Case("gdpr wrapped", "en", _wrapped(_bare(parsed)), PLAIN, truth)


def _gdpr_truth(data: bytes) -> list[Heading]:
    from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning

    warnings.filterwarnings("ignore", category=XMLParsedAsHTMLWarning)
    truth: list[Heading] = []
    depth = 2
    titles = {"ti-section-1", "ti-section-2", "ti-art", "sti-art"}
    for paragraph in BeautifulSoup(data, "lxml").find_all("p"):
        kind = next(iter(titles & set(paragraph.get("class") or [])), None)
        text = " ".join(paragraph.get_text().split())
        if text == "Whereas:":
            truth.append(Heading(2, text))
        elif kind == "ti-section-1":
            depth = 2 if text.startswith("CHAPTER") else 3
            truth.append(Heading(depth, text))
        elif kind == "ti-art":
            truth.append(Heading(depth + 1, text))
        elif kind:
            truth[-1] = Heading(truth[-1].level, f"{truth[-1].text} {text}")
    return truth


def honest() -> Iterator[Case]:
    """Pages with headings of their own, or none: the same ones must come out."""
    for path in sorted((EVALDATA / "parsing" / "docling").rglob("*.md")):
        yield Case(
            "honest docling", "en", page := path.read_text("utf-8"), MARKDOWN, headings(page)
        )
    for path in sorted((EVALDATA / "injection" / "benign_hard").rglob("*.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            page, name = row["text"], f"honest {row['source'].split('/')[-1]}"
            if "gdpr" not in name:
                yield Case(name[:24], row.get("lang") or "?", page, MARKDOWN, headings(page))
    for folder in ("gnome_help", "libreoffice_help", "xquad"):
        for path in sorted((RETRIEVAL / folder).glob("*/corpus.jsonl")):
            for row in map(json.loads, path.read_text("utf-8").splitlines()[:150]):
                page = f"# {row['title']}\n\n{_bare(row['text'])}\n"
                yield Case(f"honest {folder}", path.parent.name, page, MARKDOWN, headings(page))


def table(sums: dict[tuple[str, str], Score]) -> str:
    """A line per set, languages put together; then one per set and language that has faults."""
    whole: dict[tuple[str, str], Score] = {}
    for (name, _), total in sums.items():
        whole[name, "all"] = whole.get((name, "all"), Score(0, 0, 0, 0)) + total
    rest = {k: v for k, v in sums.items() if not v.right == v.given == v.wanted == v.levels}
    lines = [f"| {'set':24} | lang     | wanted | precision | recall | levels |"]
    lines.append(f"|{'-' * 26}|{'-' * 10}|{'-' * 8}|{'-' * 11}|{'-' * 8}|{'-' * 8}|")
    for (name, language), total in [*whole.items(), *rest.items()]:
        figures = f"{total.precision:9.3f} | {total.recall:6.3f} | {total.level:6.3f}"
        lines.append(f"| {name:24} | {language:8} | {total.wanted:6} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    """A table: all sets, then what is not perfect by language."""
    sums: dict[tuple[str, str], Score] = {}
    for source in (laws, udhr, german_laws, gdpr, honest):
        for case in source():
            key = case.name, case.language
            sums[key] = sums.get(key, Score(0, 0, 0, 0)) + scored(case)
    print(table(sums))
    if not EVALDATA.exists():
        print(f"only our own laws: {EVALDATA} is not there")


if __name__ == "__main__":
    main()
