"""Words that head the parts of laws in the accepted languages, and their rank."""

import re

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
