"""Other ways to read suspicious places of a text. Each is short; most texts have none."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from services.scanner.normalise import (
    ALL_TRAITS,
    OTHER_LETTERS,
    OTHERS,
    STRANGE,
    TURNED,
    TURNED_LETTERS,
    ZERO_WIDTH,
    Mapped,
    Place,
    around,
    fold,
    refold,
    regions,
    traits,
)

Knows = Callable[[str], bool]
"""Is a word one that rules speak of?"""

Places = Mapping[str, list[Place]]


class Reading(NamedTuple):
    """A folded reading; `name` is set if it was enciphered: nobody does so for honest reasons."""

    view: Mapped
    name: str | None = None


def _pairs(rows: str) -> dict[str, str]:
    return {pair[0]: pair[1] for pair in rows.split()}


_CYRILLIC_LATIN = _pairs(
    "аa вb сc ԁd еe ғf һh іi јj кk ӏl мm пn оo рp ԛq гr ѕs тt уy ԝw хx ьb ѵv ѡw бb ԍg өo ӡ3 ҽe ԑe"
    " єe нh иu яr зe шw"
)
_GREEK_LATIN = _pairs("αa βb γy εe ζz ηn ιi κk μu νv οo ρp τt υu χx ωw ϲc ϳj σo δd πn")
_ARMENIAN_LATIN = _pairs("օo ոn սu աa ցg հh յj զq եe լl քp ւr տs վv")
_CHEROKEE_LATIN = _pairs(
    "Ꭰd Ꭱr Ꭲt Ꭵi Ꭹy Ꭺa Ꭻj Ꭼe Ꮃw Ꮇm Ꮋh Ꮐg Ꮒh Ꮓz Ꮟb Ꮢr Ꮤw Ꮥs Ꮩv Ꮪs Ꮮl Ꮯc Ꮲp Ꮶk Ꮷd Ꮻo"
)
_COPTIC_LATIN = _pairs("ⲁa ⲃb ⲉe ⲏh ⲓi ⲕk ⲙm ⲛn ⲟo ⲣp ⲥc ⲧt ⲩy ⲭx ⲱw")
_LISU_LATIN = _pairs(
    "ꓐb ꓑp ꓒd ꓓd ꓔt ꓖg ꓗk ꓙj ꓚc ꓜz ꓝf ꓟm ꓠn ꓡl ꓢs ꓣr ꓦv ꓧh ꓪw ꓫx ꓬy ꓮa ꓰe ꓲi ꓳo ꓴu"
)
LATIN_LOOKALIKES = (
    _LISU_LATIN | _COPTIC_LATIN | _CHEROKEE_LATIN | _ARMENIAN_LATIN | _GREEK_LATIN | _CYRILLIC_LATIN
)
"""Folded letter of another script → the Latin letter that it looks like."""

_GREEK_CYRILLIC = _pairs("αа βв γг δд εе ηн ιі κк λл μм οо πп ρр τт υу φф χх")
CYRILLIC_LOOKALIKES = (
    _pairs("aа bв cс eе hн iі jј kк mм oо pр sѕ tт uи xх yу nп rг 3з 6б 4ч 0о") | _GREEK_CYRILLIC
)
_CYRILLIC_LOOSE = CYRILLIC_LOOKALIKES | {"i": "и", "b": "ь", "n": "и", "m": "т"}
LEET = _pairs("0o 1i 3e 4a 5s 7t 8b 9g @a $s !i |l +t (c €e ¡i 6g 2z")
_LEET_TABLES = (LEET, LEET | {"1": "l", "|": "i"})

Table = dict[int, str]


def _table(pairs: Mapping[str, str]) -> Table:
    return {ord(key): value for key, value in pairs.items()}


_TO_LATIN = _table(LATIN_LOOKALIKES)
_TO_CYRILLIC = (_table(CYRILLIC_LOOKALIKES), _table(_CYRILLIC_LOOSE))
_FROM_LEET = tuple(map(_table, _LEET_TABLES))

_CYRILLIC = r"\u0400-\u052f"
_RARE = r"ԁԛԝһӏԍѵѡҽӡԑ\u13a0-\u13f5\u2c80-\u2cff\ua4d0-\ua4ff"
# Each begins with what is rare in the text that it is for.
_MIXED_IN_LATIN = re.compile(rf"[{OTHER_LETTERS}](?:(?=[a-z])|(?<=[a-z].)|(?<=[{_RARE}]))")
_MIXED_IN_CYRILLIC = re.compile(
    rf"[a-z\u0370-\u03ff{_RARE}](?:(?=[{_CYRILLIC}])|(?<=[{_CYRILLIC}].)|(?<=[{_RARE}]))"
)
_LEET = re.compile(
    r"[0-9@$!|+(€¡](?:(?<=[a-z].)(?=[a-z])|(?<=[a-z].)(?=[0-9@$!|+(€¡]{1,2}[a-z])|(?<![\w@$].)(?=[a-z]{2}))"
)
_LETTERS = re.compile(r"[^\W_]*+")
_LEET_LETTERS = re.compile(r"(?:[^\W_]|[@$!|+(€¡])*+")
_LEET_SHAPE = bytes(
    100 if chr(c) in "0123456789@$!|+(" else 97 if 97 <= c <= 122 else 32 for c in range(256)
)
_LEET_HINT = re.compile(rb"d(?=d{0,2}a)")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:(?:[^\w\n<>]|_|\n(?!\n)){1,6}+[^\W_](?![^\W_])){6,}+")
_SHAPE = bytes(97 if chr(c).isalnum() or chr(c) == "?" else 32 for c in range(256))
_ALONE = re.compile(rb" a (?= {0,5}a {1,6}a {1,6}a {1,6}a )")
_NARROW_GAP = re.compile(r"(?<=[^\W_])(?:[ ]|[.,*_|/·•-]|[ ]?[.,*_|/·•-][ ]?)(?=[^\W_](?![^\W_]))")
_LONG_WORD = b"a" * 22  # letters in a row; four words without gaps have them
_NOT_LETTER = re.compile(r"[\W_]+")
INNER_TAG = r"/?(?:b|i|u|s|em|strong|span|font|a|mark|sub|sup|wbr|small|big|code)\b[^<>]{0,80}>"
_SPLIT_SHAPE = bytes(
    109 if chr(c) in "*~\\_<" else 97 if chr(c).isalnum() or chr(c) == "?" else 32
    for c in range(256)
)
_SPLIT_HINT = b"am"
_LINE_END = re.compile(r"-[ ]?\n")
_APOSTROPHES = re.compile("''")
_MARK = r"(?:[*~'\\_]{1,3}|<[^<>]{1,90}>)"
_SPLIT = re.compile(  # begins with what is rare, and looks back for the letter afterwards
    r"(?:\*(?<=[^\W_]\*)\*{0,2}|~(?<=[^\W_]~)~|'(?<=[^\W_]')'{1,2}|\\(?<=[^\W_]\\)"
    r"|_(?<=[^\W_]_)_?|-(?<=[^\W_]-)[ ]?\n[ ]{0,8}"
    rf"|<(?<=[^\W_]<)(?:!--[^<>]{{0,80}}-->|{INNER_TAG}))"
    rf"(?=(?:{_MARK}){{0,5}}[^\W_])"
)
_GLUE = re.compile(rf"(?<=[^\W_])(?:{_MARK}|-\s+){{1,6}}(?=[^\W_])")
_GLUED = re.compile(rf"[^\W_]+(?:(?:{_MARK}|-\s+){{1,6}}[^\W_]+)+")
# The text of a link stays, and each of its characters where it was.
_LINK_MARKS = re.compile(
    r"[\[\]](?:(?<=\[)(?=[^\[\]]{1,300}+\][(\[])"
    r"|(?<=[^\s\[]\])(?:\((?:<[^<>\n]{0,2000}>|[^()\s<>]{0,2000}+)\)|\[[^\[\]]{0,99}\]))"
)
_INVISIBLE = re.compile(rf"(?<=\w)[{ZERO_WIDTH}\U000e0000-\U000e007f]+(?=\w)")
_ERASED = re.compile(r"[^\x08\x7f][\x08\x7f]")
_BIDI_RUN = re.compile(r"(?<=[\u202d\u202e])[^\u202a-\u202e\n]{2,400}")


class Shape:
    """A folded text as bytes, one a character, since bytes are searched faster."""

    __slots__ = ("ascii", "letters", "spaced")

    def __init__(self, text: str) -> None:
        self.ascii = text.encode("ascii", "replace")
        """What is not ASCII is a question mark."""
        self.letters = self.ascii.translate(_SHAPE)
        """`a` for a letter or digit, and for what is not ASCII; a blank for all others."""
        self.spaced = [*_spaced(text, self.letters)]
        """Where words are typed with gaps between their letters."""


def readings(
    raw: Mapped,
    view: Mapped,
    shape: Shape,
    places: Places,
    knows: Knows,
    odd: int = ALL_TRAITS,
) -> Iterator[Reading]:
    """Other readings of a text.

    Args:
        raw: the text as it is.
        view: its folded copy.
        shape: that of the copy.
        places: where enciphered words stand in `view`, by the names that `signals()` has.
        odd: what `traits()` the text may have.
        knows: tells words that rules speak of; a place is read only if it hides one.
    """
    for other in _letters(view, shape, knows):
        yield Reading(other)
    for other in _marks(view, shape, knows):
        yield Reading(other)
    odd = odd and traits(raw.text)
    for other in _raw_readings(raw, strange=bool(odd & STRANGE)):
        yield Reading(other)
    if odd & TURNED:
        yield from _upside_down(raw)
    yield from _enciphered(raw, view, places)


def _letters(view: Mapped, shape: Shape, knows: Knows) -> Iterator[Mapped]:
    text = view.text
    if traits(text) & OTHERS:
        few = text.count("e") + text.count("a") < text.count("е") + text.count("а")
        mixed = _MIXED_IN_CYRILLIC if few else _MIXED_IN_LATIN
        tables = (_TO_LATIN, *_TO_CYRILLIC)
        for low, high in around(
            _hiding(text, _starts(mixed, text), tables, _LETTERS, knows), len(text)
        ):
            part = view.cut(low, high)
            yield part.translate(_TO_LATIN)
            if any("\u0400" <= c <= "\u052f" for c in part.text):
                yield part.translate(_TO_CYRILLIC[0])
                yield part.translate(_TO_CYRILLIC[1])
    leet = _leet(text, shape)
    for low, high in around(_hiding(text, leet, _FROM_LEET, _LEET_LETTERS, knows), len(text)):
        for table in _FROM_LEET:
            yield view.cut(low, high).translate(table)


def _starts(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    return (match.start() for match in pattern.finditer(text))


def _leet(text: str, shape: Shape) -> Iterator[int]:
    """Where a digit or mark may stand for a letter."""
    if "€" in text or "¡" in text:
        return _starts(_LEET, text)
    marked = shape.ascii.translate(_LEET_SHAPE)
    hints = (match.start() for match in _LEET_HINT.finditer(marked))
    return (at for at in hints if _LEET.match(text, at))


def _hiding(
    text: str, hints: Iterable[int], tables: Iterable[Table], letters: re.Pattern[str], knows: Knows
) -> Iterator[Place]:
    """Places with a word that, read by one of the tables, is known."""
    hides: dict[str, bool] = {}  # a flood says the same again and again
    done = 0
    for at in hints:
        if at < done:
            continue
        start, end = _word_around(text, at, letters)
        done = end
        word = text[start:end]
        if word not in hides:
            hides[word] = any(knows(word.translate(table)) for table in tables)
        if hides[word]:
            yield start, end


def _word_around(
    text: str, at: int, letters: re.Pattern[str] = _LETTERS, longest: int = 40
) -> Place:
    """The word that a character is in, or is a mark in: so many others on each side at most."""
    before = letters.match(text[max(0, at - longest) : at][::-1])
    after = letters.match(text, at + 1, at + longest)
    return at - (before.end() if before else 0), after.end() if after else at + 1


def _marks(view: Mapped, shape: Shape, knows: Knows) -> Iterator[Mapped]:
    """Without the marks and links that cut words into pieces."""
    text = view.text
    for low, high in around(_glued(text, shape, knows), len(text)):
        yield view.cut(low, high).replace(_GLUE, "")
    if "](" in text or "][" in text:
        plain = view.replace(_LINK_MARKS, "")
        if len(plain.text) != len(text):
            yield plain
    for low, high in around((m.span() for m in shape.spaced), len(text), 0):
        yield view.cut(low, high).replace(_NARROW_GAP, "")


def _glued(text: str, shape: Shape, knows: Knows) -> Iterator[Place]:
    says: dict[str, bool] = {}
    done = 0
    for at in _split(text, shape):
        if at < done:
            continue
        start, _ = _word_around(text, at)
        whole = _GLUED.match(text, start, start + 400)
        if whole is not None:
            done = whole.end()
            glued = whole.group()
            if glued not in says:
                says[glued] = any(map(knows, _NOT_LETTER.split(_GLUE.sub("", glued))))
            if says[glued]:
                yield whole.span()


def _split(text: str, shape: Shape) -> list[int]:
    """Where marks cut a word, in ascending order."""
    marked = shape.ascii.translate(_SPLIT_SHAPE)
    hints: list[int] = []
    at = marked.find(_SPLIT_HINT)
    while at >= 0:
        hints.append(at + 1)
        at = marked.find(_SPLIT_HINT, at + 1)
    if "-\n" in text or "- \n" in text:
        hints += _starts(_LINE_END, text)
    if "''" in text:
        hints += _starts(_APOSTROPHES, text)
    return sorted(at for at in hints if _SPLIT.match(text, at))


def squeezed(view: Mapped, shape: Shape) -> Iterator[Mapped]:
    """Words typed with gaps between their letters, or with none between them, without any gap."""
    for match in shape.spaced:
        yield view.cut(*match.span()).replace(_NOT_LETTER, "")
    at = shape.letters.find(_LONG_WORD)
    while at >= 0:
        start, end = _word_around(view.text, at, longest=200)
        if end - start >= len(_LONG_WORD):
            yield view.cut(start, end)
        at = shape.letters.find(_LONG_WORD, max(end, at + 1))


def _spaced(text: str, letters: bytes) -> Iterator[re.Match[str]]:
    done = 0
    if match := _SPACED.match(text):
        done = match.end()
        yield match
    for hint in _ALONE.finditer(letters, done):
        start = hint.start() + 1
        if start >= done and (match := _SPACED.match(text, start)):
            done = match.end()
            yield match


def _raw_readings(raw: Mapped, *, strange: bool) -> Iterator[Mapped]:
    if strange:
        for low, high in regions(raw.text, _INVISIBLE):
            yield refold(raw.cut(low, high).replace(_INVISIBLE, " "))
        for low, high in regions(raw.text, _BIDI_RUN):
            yield refold(raw.cut(low, high).turned(_BIDI_RUN))
    if "\b" in raw.text or "\x7f" in raw.text:
        for low, high in regions(raw.text, _ERASED):
            yield refold(raw.cut(low, high).replace(_ERASED, ""))


# --- letters that stand for others ---------------------------------------------------------------

_TURNED = _table(
    _pairs(
        "ɐa ɔc ǝe əe ɟf ƃg ɓg ɥh ᴉi ıi ɾj ɿj ʞk ʃl ꞁl ɯm ɹr ʇt ʌv ʍw ʎy Ɐa Ɔc Ǝe Ⅎf ⅁g ſj ⅂l Ɯm Ԁp"
        " Ɒq ᴚr ⊥t ┴t ʁr ᴧv ⅄y 69 96 bq dp pd qb un nu"
    )
)
_TURNED_LETTER = re.compile(f"[{TURNED_LETTERS}]")
_LINES = re.compile(r"[^\n]+")
_RUNS = re.compile(r"[^\W_]{3,}")


def _upside_down(raw: Mapped) -> Iterator[Reading]:
    for low, high in regions(raw.text, _TURNED_LETTER):
        turned = raw.cut(low, high).translate(_TURNED)
        yield Reading(refold(turned.turned(_LINES)), "upside-down")
        yield Reading(refold(turned), "upside-down")


_ALPHABETS = {
    "": "abcdefghijklmnopqrstuvwxyz",
    "ru": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "ru-33": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
}
_LATIN_WORDS = [
    "ignore", "disregard", "forget", "instruction", "instructions", "prompt", "prompts",
    "previous", "override", "ignoriere", "ignorieren", "anweisung", "anweisungen", "vergiss",
    "missachte", "vorherigen", "ignoriraj", "zanemari", "zanemarite", "prethodne", "prethodna",
    "upute", "uputstva", "instrukcije", "navodila", "prezri",
]  # fmt: skip
_CYRILLIC_WORDS = [
    "игнорируй", "игнорируйте", "забудь", "забудьте", "инструкции", "инструкций",
    "инструкциите", "предыдущие", "предишни", "пренебрегни", "игнорирай", "игнорирайте",
    "игнориши", "занемари", "претходна", "претходне", "упутства", "игнорирај", "претходните",
    "упатства", "промпт",
]  # fmt: skip


@cache
def _ciphers() -> dict[str, Table]:
    """By name: tables that decipher: every shift of every alphabet, and alphabets turned round."""
    tables: dict[str, Table] = {}
    for key, letters in _ALPHABETS.items():
        size = len(letters)
        places = [*range(size)]
        orders = {f"caesar {n} {key}": places[n:] + places[:n] for n in range(1, size)}
        orders[f"atbash {key}"] = places[::-1]
        for name, order in orders.items():
            table = {ord(letters[to]): letters[at] for at, to in enumerate(order)}
            table |= {ord(chr(c).upper()): letter.upper() for c, letter in table.items()}
            tables[name.strip()] = table
    return tables


def signals() -> dict[str, tuple[str, ...]]:
    """Name of a way to write → the words that give an order away, folded, as they look in it."""
    found = {}
    for name, table in _ciphers().items():
        back = {ord(plain): chr(code) for code, plain in table.items()}
        latin = name.split()[-1].isdigit() or name == "atbash"
        words = _LATIN_WORDS if latin else _CYRILLIC_WORDS
        found[name] = tuple({fold(word.translate(back)).text for word in words})
    turned = [fold(word[::-1]).text for word in (*_LATIN_WORDS, *_CYRILLIC_WORDS)]
    return found | {"reversed": tuple(turned)}


def _enciphered(raw: Mapped, view: Mapped, places: Places) -> Iterator[Reading]:
    first = int(raw.origin[0]) if raw.text else 0
    for name, found in places.items():
        spans = [(low - first, high - first) for low, high in (view.span(*p) for p in found)]
        for low, high in around(sorted(spans), len(raw.text)):
            part = raw.cut(low, high)
            if name == "reversed":
                yield Reading(refold(part.turned(_LINES)), name)
                yield Reading(refold(part.turned(_RUNS)), name)
            else:
                yield Reading(refold(part.translate(_ciphers()[name])), name.split()[0])
