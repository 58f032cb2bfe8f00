"""How the parts of laws and papers are headed in the accepted languages. Pure."""

import re
from typing import NamedTuple

LONGEST = 160
"""Characters; a line that is longer is no heading by its look alone."""

LONGEST_TITLE = 400
"""Characters of the title of an article or a chapter of a law."""

ARTICLE = "article"
PARAGRAPH = "§"
ANNEX = "annex"

# Highest first: rank, and forms as they stand at the start of a heading. What stands above what
# differs between countries (`раздел`), so this is where a document that does not tell starts from.
_UNITS: tuple[tuple[int, str], ...] = (
    (0, "book|buch|книга|knjiga"),
    (1, "part|teil|часть|част|део|дел|dio|deo|del"),
    (2, "title|titel|дял|наслов|naslov"),
    (3, "chapter|kapitel|hauptstück|глава|поглавље|поглавје|poglavlje|poglavje|glava"),
    (4, "section|abschnitt|раздел|секция|секција|одељак|одјељак|одсек|одсјек|оддел|отсек|одделок|"
        "odjeljak|odeljak|odsjek|odsek|oddelek"),
    (5, "subsection|unterabschnitt|untertitel|подраздел|пододдел|пододељак|подсекција|pododjeljak|"
        "pododeljak|pododsek|pododdelek|titelabschnitt"),
    (6, r"article|artikel|art\.?|статья|член|чл\.|члан|članak|clanak|čl\.|član|clan|člen"),
    (7, "§{1,2}|параграф"),
    (8, "annex|appendix|schedule|anhang|anlage|приложение|прилог|prilog|priloga|додатак|dodatak|"
        "анекс|aneks"),
)  # fmt: skip
_ARTICLE_RANK, _PARAGRAPH_RANK, _ANNEX_RANK = 6, 7, 8
_LEMMAS = {_ARTICLE_RANK: ARTICLE, _PARAGRAPH_RANK: PARAGRAPH, _ANNEX_RANK: ANNEX}

# 1, 2, 3, … in words: stems, and the endings that they take.
_ORDINALS: tuple[tuple[str, str], ...] = (
    ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
     "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth", ""),
    ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
     "sixteen seventeen eighteen nineteen twenty", ""),
    ("erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft dreizehnt vierzehnt "
     "fünfzehnt sechzehnt siebzehnt achtzehnt neunzehnt zwanzigst", "e|er|es|en"),
    ("първ втор трет четвърт пет шест седм осм девет десет единадесет дванадесет тринадесет "
     "четиринадесет петнадесет шестнадесет седемнадесет осемнадесет деветнадесет двадесет",
     "и|а|о"),
    ("перв втор трет четверт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат "
     "четырнадцат пятнадцат шестнадцат семнадцат восемнадцат девятнадцат двадцат",
     "ый|ой|ий|ая|ья|ое|ье"),
    ("прв друг трећ четврт пет шест седм осм девет десет једанаест дванаест тринаест четрнаест "
     "петнаест шеснаест седамнаест осамнаест деветнаест двадесет", "и|а|о|е"),
    ("прв втор трет четврт пет шест седм осм девет десет единаесет дванаесет тринаесет "
     "четиринаесет петнаесет шеснаесет седумнаесет осумнаесет деветнаесет дваесет",
     "|и|а|о|ти|та|то"),
    ("prv drug treć četvrt pet šest sedm osm devet deset jedanaest dvanaest trinaest četrnaest "
     "petnaest šesnaest sedamnaest osamnaest devetnaest dvadeset", "i|a|o|e"),
    ("prv drug tretj četrt pet šest sedm osm devet deset enajst dvanajst trinajst štirinajst "
     "petnajst šestnajst sedemnajst osemnajst devetnajst dvajset", "i|a|o"),
)  # fmt: skip

_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_AMOUNTS = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
_SIGNS = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")
_LOOKALIKES = str.maketrans("ІХМС", "IXMC")
_ROMAN = r"[IVXLCDMІХМС]{1,9}"
_FIGURE = r"\d{1,4}(?:\s?(?:bis|ter|quater)\b(?!\s*\d)|\.?[a-zа-яđšžčćѓќљњџ]{1,2}(?![^\W\d_]))?"
_PARTED = r"(?:[.\-–/^]\d{1,3})*"
_END = r"(?![^\W_])"


def _ordinal_values() -> dict[str, int]:
    values: dict[str, int] = {}
    values |= dict.fromkeys(("siebente", "siebenter", "siebentes"), 7)
    for stems, endings in _ORDINALS:
        for value, stem in enumerate(stems.split(), start=1):
            for ending in endings.split("|"):
                values.setdefault(stem + ending, value)
    return values


_ORDINAL_VALUES = _ordinal_values()
_ORDINAL = "|".join(sorted(_ORDINAL_VALUES, key=len, reverse=True))
_COMPOUND = r"(?:двадесет|дваесет|dvadeset)\s+(?:и|i)\s+"
_RANKS = {
    re.sub(r"[^\w§]|\d", "", word): rank for rank, words in _UNITS for word in words.split("|")
}


def _longest_first(words: str) -> str:
    return "|".join(sorted(words.split("|"), key=len, reverse=True))


_WORD = "(?:{})(?:(?<=[.§])|(?![^\\W\\d_]))".format(
    _longest_first("|".join(words for _, words in _UNITS))
)
_MARK = re.compile(
    rf"(?P<word>(?i:{_WORD}))(?:\s*(?:№|(?i:no|nr|br|бр|број|broj|št)(?:\.|(?=\s)))?\s*"
    rf"(?:(?P<figure>{_FIGURE}{_PARTED}){_END}|(?P<roman>{_ROMAN}(?:\s?[A-Za-zА-Яа-я](?=[.\s]|$))?"
    rf"{_PARTED}){_END}|(?P<letter>[A-ZА-ЯČĆĐŠŽ])(?=[.:)\s]|$)"
    rf"|(?P<ordinal>(?i:(?:{_COMPOUND})?(?:{_ORDINAL}))){_END}))?"
)
# `1. Section` is an item of a list in English, so not every word may come second.
_SECOND = _longest_first(
    "buch|knjiga|teil|дел|део|dio|deo|del|titel|untertitel|naslov|наслов|kapitel|hauptstück|глава|поглавље|"
    "поглавје|poglavlje|poglavje|glava|abschnitt|раздел|одељак|оддел|odjeljak|odeljak|oddelek|"
    "odsjek|odsek|unterabschnitt|pododdelek|artikel|член|члан|članak|član|člen"
)
_SECOND_TO_WORDS = _longest_first(f"{_SECOND}|book|part|chapter|title|section|часть|част|дял|книга")
_NUMBER_FIRST = re.compile(
    rf"(?:(?:(?P<figure>{_FIGURE}{_PARTED})|(?P<roman>{_ROMAN}))(?:\.\s*|(?<=[a-zа-я])\s+)"
    rf"(?P<word>(?i:{_SECOND}))(?!\s+\d)"
    rf"|(?P<ordinal>(?i:{_ORDINAL}))\s+(?P<other>(?i:{_SECOND_TO_WORDS}))){_END}"
)
_SOLE = re.compile(
    r"(?i:(?:sole|only|einziger|единствен|единственная|jedini|edini|јединствени|единствен)\s+"
    r"(?:article|artikel|paragraph|член|статья|članak|član|члан|člen))(?![^\W_])"
)
_ROMAN_ALONE = re.compile(
    rf"(?P<roman>{_ROMAN})(?:\s?(?P<suffix>[a-zа-я])(?=[.\s]))?"
    r"(?:\.|(?=\s[-–—]\s)|(?=\s+[^\W\d_a-zа-я]{2}))\s*[-–—]?\s*(?=\S)"
)
_THROUGH = re.compile(r"\s*(?:bis|und|to|and|[-–—])\s*(?:§\s*)?\d{1,4}[a-z]?(?![^\W_])")
_SEPARATORS = re.compile(r"[\s.:)\]\-–—|]*")


class Mark(NamedTuple):
    """What a line is the head of: `Article 12a` is `("article", 6, 12, "a")`.

    `unit` tells kinds apart; for what is above an article it is the word itself. `end`: where in
    the line the mark ends; `title`: where what comes after it and a separator starts. `value` is
    0 for what has no number.
    """

    unit: str
    rank: int
    value: int
    suffix: str
    end: int
    title: int


def legal_mark(text: str) -> Mark | None:
    """The mark at the start of a line of a law; None if it starts otherwise.

    The word must start with a capital, or stand behind its number: `5. člen`.
    """
    match = _MARK.match(text) if _capital(text) else None
    if match is None and text[:1].isalnum():
        match = _NUMBER_FIRST.match(text)
    if match is None:
        sole = _SOLE.match(text)
        return _mark(text, ARTICLE, _ARTICLE_RANK, (1, ""), sole.end()) if sole else None
    word = (match["word"] or match["other"]).lower()
    rank = _RANKS[word.rstrip(".") if word[0] != "§" else "§"]
    value, suffix = _number(match)
    end = match.end()
    if value == 0:
        # Only an annex may stand alone: the others have a number.
        whole = rank == _ANNEX_RANK and not re.match(r"[^\W_]", text[end:])
        return _mark(text, ANNEX, rank, (0, ""), end) if whole else None
    if match[0].startswith("§§"):
        through = _THROUGH.match(text, end)
        end = through.end() if through else end
    # `Чл. 106 . (1)`: a blank before the full stop.
    end += text[end : end + 2] == " ."
    if text[end : end + 1] == "." and not text[end + 1 : end + 2].isalnum():
        end += 1
    return _mark(text, _LEMMAS.get(rank, word), rank, (value, suffix), end)


def roman_mark(text: str) -> Mark | None:
    """`IV. Title`: how many laws head their chapters, and some papers their sections."""
    match = _ROMAN_ALONE.match(text)
    value = roman_value(match["roman"]) if match else 0
    if match is None or value == 0:
        return None
    end = match.end("suffix") if match["suffix"] else match.end("roman")
    end += text[end] == "."
    return Mark("roman", 3, value, match["suffix"] or "", end, match.end())


def _capital(text: str) -> bool:
    return text[:1].isupper() or text[:1] == "§"


def _mark(text: str, unit: str, rank: int, number: tuple[int, str], end: int) -> Mark:
    separator = _SEPARATORS.match(text, end)
    return Mark(unit, rank, *number, end, separator.end() if separator else end)


def _number(match: re.Match[str]) -> tuple[int, str]:
    """Value and what follows it; value 0 if there is no number."""
    groups = match.groupdict()
    if groups["figure"]:
        digits = re.match(r"\d+", groups["figure"])
        return int(digits[0] if digits else 0), groups["figure"].lstrip("0123456789").strip()
    if groups["roman"]:
        roman = re.match(_ROMAN, groups["roman"])
        value = roman_value(roman[0]) if roman else 0
        return value, groups["roman"][roman.end() if roman else 0 :].strip()
    if groups.get("letter"):
        first = "A" if groups["letter"] <= "Z" else "А"
        return ord(groups["letter"]) - ord(first) + 1, ""
    if groups["ordinal"]:
        words = groups["ordinal"].lower().split()
        return _ORDINAL_VALUES.get(words[-1], 0) + (20 if len(words) > 1 else 0), ""
    return 0, ""


def roman_value(text: str) -> int:
    """14 for `XIV`, also in Cyrillic letters; 0 for what is no Roman number."""
    digits = [_ROMAN_DIGITS.get(letter, 0) for letter in text.translate(_LOOKALIKES)]
    total = 0
    for digit, after in zip(digits, [*digits[1:], 0], strict=False):
        total += -digit if digit < after else digit
    return total if text.translate(_LOOKALIKES) == roman(total) else 0


def roman(value: int) -> str:
    """`XIV` for 14; empty for 0 and less."""
    signs = zip(_AMOUNTS, _SIGNS, strict=True)
    out = ""
    for amount, sign in signs:
        times, value = divmod(value, amount) if value > 0 else (0, value)
        out += sign * times
    return out


# --- titles and sentences ---------------------------------------------------------------------

# Words with a capital that go on after a reference: `§ 5 Absatz 2 gilt`, `Статья 5 Закона`.
_REFERENCE = re.compile(
    r"(?:Abs|Absatz|Absätze|Unterabs|Unterabsatz|Satz|Sätze|Nr|Nrn|Nummer|Nummern|Buchst|Buchstabe|"
    r"Buchstaben|Halbsatz|Ziff|Ziffer|Alt|Alternative|Var|Variante|Rn|Rdnr|i\.\s?V\.\s?m|iVm|ff?|"
    r"Закона|Федерального|Кодекса|Конституции|Гражданского|Налогового|Уголовного|Трудового|Семейного|"
    r"Регламента|Договора|Договорот|Правил|Устава|Законика|Правилника|Уредбе|Директиве|"
    r"Zakona|Zakonika|Ustava|Ustave|Ugovora|Uredbe|Direktive|Pravilnika|Pogodbe|Pravilnik|Povelje|"
    r"Paragraph|Paragraphs|Point|Regulation|Directive|Convention|Charter"
    r")(?![^\W_])\.?"
)
_CODE = re.compile(r"(?:[A-ZА-Я]{2,5}|[A-Z]+[a-z]{1,2}[A-Z]+|DS-GVO)(?=$|[\s,;.)])")
_NUMBERED_PARAGRAPH = re.compile(r"\(\d{1,3}[a-zа-я]?\)")
_VERB = re.compile(
    r"\b(?:shall|applies|gilt|gelten|findet|применяется|применяются|прилага(?:т)?\s|примењује\s+се|"
    r"се\s+применува|primjenjuje\s+se|primenjuje\s+se|se\s+uporablja)\b",
    re.IGNORECASE,
)


_ANNEX_TO = re.compile(
    r"(?:to|of|pursuant|zu|zum|zur|gemäß|към|к|ко|кон|од|уз|uz|iz|od|k|h)\s", re.IGNORECASE
)


_NUMBER_ALONE = re.compile(r"(?P<value>\d{1,2})(?P<suffix>[a-zа-я]?)\.?\s+(?=\S)")


def number_mark(text: str) -> Mark | None:
    """`3. POWERS OF THE COURT`: how some laws head their chapters, in capitals."""
    match = _NUMBER_ALONE.match(text)
    if match is None or not in_capitals(text[match.end() :]):
        return None
    end = match.end("suffix") + (text[match.end("suffix")] == ".")
    return Mark("number", 3, int(match["value"]), match["suffix"], end, match.end())


def in_capitals(text: str) -> bool:
    """Whether a line has several letters, all of them capitals."""
    return text.isupper() and len(re.findall(r"[^\W\d_]", text)) > 4


def annex_to(text: str) -> bool:
    """Whether what follows `Приложение № 1` says what it is annexed to: `към чл. 3, ал. 4`."""
    tells = len(text) <= LONGEST and _ANNEX_TO.match(text) is not None
    return tells and text[-1] not in ".,;:" and _VERB.search(text) is None


def reads_as_title(text: str, head: str = "") -> bool:
    """Whether what follows `Article 5` (`head`) on its line is a title, not more of a sentence."""
    if not text or len(text) > LONGEST_TITLE or text.rstrip('"“”»’*_')[-1:] in ".,;:":
        return False
    first = text.lstrip("(\"'„»«“‘[*_")[:1]
    if not (first.isupper() or first.isdigit() or text[0] in "(["):
        return False
    if _REFERENCE.match(text) or _VERB.search(text) or _NUMBERED_PARAGRAPH.match(text):
        return False
    # `Article 5 GDPR`, but not a law that shouts: `CHAPTER I SCOPE`.
    short = _CODE.match(text) and (len(text.split()) == 1 or not text.isupper())
    return not short or (head.isupper() and text.isupper())


def legal_rank(text: str) -> int | None:
    """0 for a book … 7 for a paragraph sign, 8 for an annex; None for what starts otherwise."""
    mark = legal_mark(text)
    return mark.rank if mark else None


def is_label(text: str) -> bool:
    """`Article 5` or `Chapter I` and no more: the title, if there is one, stands elsewhere."""
    line = text.strip()
    mark = legal_mark(line) if len(line) <= LONGEST else None
    return mark is not None and mark.value > 0 and mark.end == len(line)


def is_article(text: str) -> bool:
    """A label of an article or a paragraph."""
    return is_label(text) and legal_rank(text) in {_ARTICLE_RANK, _PARAGRAPH_RANK}


def is_legal_heading(text: str) -> bool:
    """A line such as `Article 5`, `§ 7 Begriffe` or `Члан 12.`, and not a sentence about one."""
    line = text.strip()
    mark = legal_mark(line) if len(line) <= LONGEST and "\n" not in line else None
    if mark is None or mark.value == 0:
        return False
    return mark.end == len(line) or reads_as_title(line[mark.title :], line[: mark.end])


# --- headings without a number ----------------------------------------------------------------

_PREAMBLE = re.compile(
    r"(?:preamble|präambel|преамбюл|преамбула|преамбул|preambula|увод|uvod|вовед|eingangsformel|"
    r"schlu(?:ss|ß)formel)",
    re.IGNORECASE,
)
_RECITALS = re.compile(
    r"(?:whereas|recitals|in erwägung nachstehender gründe|erwägungsgründe|като имат предвид,? че|"
    r"като има предвид,? че|съображения|budući da|uzimajući u obzir(?: sljedeće)?|"
    r"ob upoštevanju naslednjega|uvodne izjave|имајући у виду|imajući u vidu|имајќи предвид дека|"
    r"принимая во внимание(?: следующее)?)\s?:?",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:(?:(?:transitional|final|closing)(?: and )?){1,2} provisions|"
    r"(?:übergangs- und )?schlu(?:ss|ß)(?:bestimmungen|vorschriften)|übergangsvorschriften|"
    r"(?:(?:преходни|заключителни|допълнителни)(?: и )?){1,2}\s?разпоредби|"
    r"(?:допълнителна|преходна|заключителна) разпоредба|"
    r"(?:(?:заключительные|переходные)(?: и )?){1,2}\s?положения|"
    r"(?:(?:прелазне|завршне)(?: и )?){1,2}\s?одредбе|"
    r"(?:(?:преодни|завршни)(?: и )?){1,2}\s?одредби|"
    r"(?:(?:prijelazne|prelazne|završne)(?: i )?){1,2}\s?odredbe|"
    r"(?:(?:prehodn[ei]|končn[ei])(?: in )?){1,2}\s?določb[ei])",
    re.IGNORECASE,
)


_NAMED_PARTS = re.compile(
    "|".join(f"(?:{p.pattern})" for p in (_PREAMBLE, _RECITALS, _CLOSING)), re.IGNORECASE
)


def named_part(text: str) -> bool:
    """A preamble, the recitals or the final provisions of a law: a heading without a number."""
    short = text.rstrip(".:") if len(text) < 80 else ""
    return _NAMED_PARTS.fullmatch(short) is not None


_LAW = re.compile(
    r"\b(?:act|law|code|regulation|directive|decision|constitution|declaration|charter|convention|"
    r"treaty|statute|ordinance|covenant|protocol|\w*gesetz(?:buch)?|\w*verordnung|richtlinie|"
    r"beschluss|\w*verfassung|erklärung|satzung|abkommen|übereinkommen|\w*vertrag|charta|"
    r"закон|законик|кодекс|конституция|указ|постановление|декларация|декларација|регламент|директива|"
    r"конвенция|конвенција|договор|устав|наредба|уредба|правилник|харта|повеља|одлука|статут|"
    r"zakon|zakonik|ustav|ustava|uredba|pravilnik|deklaracija|odluka|odlok|statut|direktiva|povelja|"
    r"listina|pogodba|konvencija)\b",
    re.IGNORECASE,
)


def names_law(text: str) -> bool:
    """Whether a line could be the title of a law: it has a word for one."""
    return _LAW.search(text) is not None


# --- papers -----------------------------------------------------------------------------------

_NUMBERED = re.compile(r"^(\d{1,2}(?:\.\d{1,3}){0,4})\.?\s+(?=[^\W\d_a-zа-я])")


def number_depth(text: str) -> int | None:
    """1 for `2 Method` or `IV. Method`, 3 for `2.1.4 Data`; None for text without a number."""
    parts = number_parts(text)
    if parts is not None:
        return len(parts)
    return 1 if re.match(r"[IVX]{1,5}\.\s+\S", text) else None


def number_parts(text: str) -> tuple[int, ...] | None:
    """`(2, 1, 4)` for `2.1.4 Data`."""
    match = _NUMBERED.match(text) if text[:1].isdigit() else None
    return tuple(map(int, match[1].split("."))) if match else None


_SECTIONS = re.compile(
    r"abstract|acknowledge?ments|bibliography|references|appendix|"
    r"zusammenfassung|danksagung|literatur|literaturverzeichnis|anhang|"
    r"аннотация|литература|благодарности|резюме|библиография|"
    r"сажетак|захвалница|апстракт|благодарност|sažetak|zahvala|literatura|apstrakt|povzetek|viri",
    re.IGNORECASE,
)


def named_section(text: str) -> bool:
    """A part of a paper that has no number: an abstract, the references."""
    return _SECTIONS.fullmatch(text.rstrip(".:")) is not None


# --- decisions of courts ----------------------------------------------------------------------

_DECISION = re.compile(
    r"(?:the )?(?:facts|law|procedure|judgment|operative part)|"
    r"reasons(?: for (?:the )?(?:judgment|decision))?|"
    r"tenor|tatbestand|(?:entscheidungs)?gründe|leits[aä]tze?|sachverhalt|rechtsmittelbelehrung|spruch|"
    r"установил[аи]?|решил[аи]?|постановил[аи]?|определил[аи]?|приговорил[аи]?|"
    r"установи|реши|постанови|определи|мотиви|"
    r"пресуд[аеу]|решење|образложење|изрека|поука о правном (?:леку|лијеку)|"
    r"решение|образложение|правна поука|"
    r"presud[aeu]|rješenje|rešenje|obrazloženje|izreka|pravna pouka|pouka o pravnom l(?:ije|e)ku|"
    r"uputa o pravnom lijeku|"
    r"sodba|sklep|izrek|obrazložitev|pravni pouk",
    re.IGNORECASE,
)
_SPACED_LETTERS = re.compile(r"(?<=\b\w) (?=\w\b)")


def part_of_decision(text: str) -> bool:
    """`Tatbestand`, `УСТАНОВИЛ:`, `O b r a z l o ž e n j e`: a part of what a court decided."""
    plain = text.strip().rstrip(":").strip()
    if len(plain) > 60:
        return False
    closed = _SPACED_LETTERS.sub("", plain)
    return _DECISION.fullmatch(plain) is not None or _DECISION.fullmatch(closed) is not None
