"""Words that head the parts of laws in the accepted languages, and their rank."""

import re
from collections.abc import Sequence

from services.converter.form import is_heading, spaced
from services.converter.lines import Line, joined

# Highest first. Each line is one rank; forms as they stand at the start of a heading.
_RANKS = (
    r"book|buch|книга|knjiga",
    r"part|teil|част|часть|део|дел|dio|deo|del(?=\s+[IVX\d])",
    r"title|titel|дял|раздел|наслов|глава\s+наслов|naslov",
    r"chapter|kapitel|глава|поглавље|поглавје|poglavlje|poglavje|glava",
    r"section|abschnitt|раздел|секция|одељак|оддел|odjeljak|odsjek|odeljak|oddelek",
    r"subsection|unterabschnitt|подраздел|пододдел|pododjeljak|pododeljak",
    r"article|artikel|член|статья|члан|članak|clanak|član|clan|člen",
    r"§{1,2}|paragraph",
)
_NUMBER = r"(?:\d+[a-zа-я]?|[IVXLCDM]+|[ІХ]+)(?:[.\-–]\d+)*"
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|erster|zweiter|dritter|vierter|fünfter|первая|вторая|"
    r"третья|четвертая|първа|втора|трета|четвърта|прва|друга|трећа|трета|prva|druga|treća|tretja)"
)
_LEGAL = tuple(
    re.compile(
        # `Article 5`, `§ 12 Title`, `Члан 3.`, and the Slavic `5. člen`, `I. POGLAVJE`.
        rf"^(?:(?:{words})\s*{_NUMBER}|{_NUMBER}\.?\s+(?:{words})|{_ORDINAL}\s+(?:{words}))"
        r"(?=$|[\s.:,)\-–—])",
        re.IGNORECASE,
    )
    for words in _RANKS
)
_NUMBERED = re.compile(r"^(\d{1,2}(?:\.\d{1,3}){0,4})\.?\s+(?=[^\W\d_a-zа-я])")
_ROMAN = re.compile(r"^([IVX]{1,5})\.\s+(?=\S)")
_LOWER_AFTER = re.compile(
    r"^\S+\s+\S+\s*[,;]?\s+(?:of|der|des|die|von|на|от|и|shall|is|was|the|je|se)\b"
)

LONGEST = 160
"""Characters; what is longer is no heading."""


def legal_rank(text: str) -> int | None:
    """0 for a book … 7 for a paragraph sign; None when `text` does not start like that."""
    for rank, pattern in enumerate(_LEGAL):
        if pattern.match(text):
            return rank
    return None


def is_legal_heading(text: str) -> bool:
    """A line such as `Article 5`, `§ 7 Begriffe` or `Члан 12.`, and not a sentence about one."""
    line = text.strip()
    if len(line) > LONGEST or legal_rank(line) is None or "\n" in line:
        return False
    words = line.split()
    if len(words) <= 3:
        return not line.endswith((",", ";"))
    if line.endswith((".", ",", ";", ":")) or _LOWER_AFTER.match(line):
        return False
    third = words[2].lstrip('(–—-"„»')
    return len(words) <= 16 and (third[:1].isupper() or not third[:1].isalpha())


def number_depth(text: str) -> int | None:
    """1 for `2 Method` or `IV. Method`, 3 for `2.1.4 Data`; None for text without a number."""
    match = _NUMBERED.match(text)
    if match:
        return match[1].count(".") + 1
    return 1 if _ROMAN.match(text) else None


# --- recovery ---------------------------------------------------------------------------------

_PREAMBLE = re.compile(
    r"^(?:preamble|präambel|преамбюл|преамбула|преамбул|preambula)$", re.IGNORECASE
)
_ARTICLE_RANK = 6
_LEAST = 3
_ENOUGH_TEXT = 80


def recover_headings(lines: Sequence[Line]) -> list[Line]:
    """Headings for a law or a numbered paper that came without any.

    Nothing is done to a text that has more than a title and one heading.
    """
    known = [n for n, line in enumerate(lines) if is_heading(line)]
    if len(known) > 2 or any(line.code for line in lines):
        return list(lines)
    texts = [line.text for line in lines]
    top = max((len(texts[n].split(" ")[0]) for n in known), default=0)
    ranks = _legal_lines(texts) or _numbered_lines(texts)
    if not ranks:
        return list(lines)
    order = sorted(set(ranks.values()))
    titled = _titled(texts, ranks)
    out: list[Line] = []
    skip = -1
    for number, line in enumerate(lines):
        if number <= skip:
            continue
        if number not in ranks:
            out.append(line)
            continue
        parts: list[Line | str] = [line.stripped()]
        follow = _next_text(texts, number)
        if titled and follow is not None and _is_title(texts[follow], follow, ranks):
            parts, skip = [*parts, " ", lines[follow].stripped()], follow
        level = min(top + 1 + order.index(ranks[number]), 6)
        out += [Line(""), joined(["#" * level + " ", *parts]), Line("")]
    return spaced(out)


def _legal_lines(lines: list[str]) -> dict[int, int]:
    """Line numbers and ranks of headings of a law, if there are enough of them."""
    ranks: dict[int, int] = {}
    for number, line in enumerate(lines):
        rank = legal_rank(line.strip())
        if rank is not None and is_legal_heading(line):
            ranks[number] = rank
        elif _PREAMBLE.match(line.strip()):
            ranks[number] = _ARTICLE_RANK
    counts = [sum(rank == other for other in ranks.values()) for rank in ranks.values()]
    return ranks if max(counts, default=0) >= _LEAST else {}


def _numbered_lines(lines: list[str]) -> dict[int, int]:
    """Line numbers and depths of `1 Introduction`, `2 Method`, … with text between them."""
    found: list[tuple[int, int, int]] = []
    text = _ENOUGH_TEXT
    for number, line in enumerate(lines):
        match = _NUMBERED.match(line)
        alone = not _line_at(lines, number - 1) and not _line_at(lines, number + 1)
        if match and alone and len(line) < _ENOUGH_TEXT and line[-1:] not in ".,;:?!":
            found.append((number, int(match[1].split(".")[0]), match[1].count(".") + 1))
            if text < _ENOUGH_TEXT and match[1].count(".") == 0:
                return {}
            text = 0
        text += len(line)
    chapters = [value for _, value, depth in found if depth == 1]
    if len(chapters) < _LEAST or chapters != list(range(1, len(chapters) + 1)):
        return {}
    return {number: depth for number, _, depth in found}


def _line_at(lines: list[str], number: int) -> str:
    return lines[number].strip() if 0 <= number < len(lines) else ""


def _next_text(lines: list[str], number: int) -> int | None:
    return next(
        (n for n in range(number + 1, min(number + 4, len(lines))) if lines[n].strip()), None
    )


def _is_title(line: str, number: int, ranks: dict[int, int]) -> bool:
    text = line.strip()
    return (
        number not in ranks
        and len(text) <= 120
        and text[:1].isupper()
        and text[-1:] not in ".,;:?!"
        and not re.match(r"[-*+|>#\d(]", text)
    )


def _titled(lines: list[str], ranks: dict[int, int]) -> bool:
    """Whether this law gives its articles a title on the next line: most of them have one."""
    follows = [(n, _next_text(lines, n)) for n in ranks if ranks[n] == max(ranks.values())]
    titles = sum(f is not None and _is_title(lines[f], f, ranks) for _, f in follows)
    return titles * 5 >= len(follows) * 3
