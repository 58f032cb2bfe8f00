"""RTF read by its own rules: paragraphs, headings, lists, tables, footnotes; the unseen apart.

Not by docling, which needs LibreOffice for it, nor by a library: those that are kept give plain
text only. After the Rich Text Format Specification 1.9.1.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import RTF
from services.converter.parsing.hidden import Unseen, is_sentence
from services.converter.parsing.literal import paragraph, plain_line, raised, span
from services.converter.parsing.looks import (
    STRUCK,
    Links,
    Runs,
    literal,
    look_of,
    names_quotation,
    names_title,
    plain_text,
)
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.rtf_grid import TableRow, grid
from services.converter.parsing.rtf_tables import (
    CHARSETS,
    CODEPAGES,
    HEADING_NAME,
    KEPT,
    MAC_PAGES,
    SIGNS,
    SKIPPED,
    WHOLE,
)
from services.converter.parsing.rtf_unseen import unreadable
from services.converter.parsing.table_text import styled_row, table_row, table_rule
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)",
    re.DOTALL,
)
_NUMBER_MARK = re.compile(r"(\d{1,9})[.)]?")
_MOST_GROUPS = 2000
_MOST_CELLS = 500
_MOST_NOTES = 10_000
_FAR_LEFT, _FAR_RIGHT = -4000, 30_000
"""Twips: where no page is."""
_OURS = 0xFFFE
"""Signs of notes and links, which no text may hold."""
_NOTE = re.compile("\ufffe(\\d+)\uffff")
_HYPERLINK = re.compile(r"HYPERLINK\s+\"([^\"\s]+)\"")


@dataclass(slots=True)
class _State:
    """What a group inherits and its end restores."""

    skip: bool = False
    target: str = "body"
    font: int = 0
    unicode_skip: int = 1
    twice: bool = False
    hidden: bool = False
    deleted: bool = False
    color: int = 0
    painted: bool = False
    ground: int = 0
    width: int = 100
    lift: int = 0
    size: int = 24
    style: int = 0
    outline: int | None = None
    level: int = 0
    in_table: bool = False
    bold: bool = False
    italic: bool = False
    struck: bool = False
    raised: bool = False
    linked: bool = False
    """Within the text of a link."""


def parse_rtf(path: Path, options: ParseOptions) -> Parse:
    """A rich text. Places are numbers of paragraphs (`p[12]`) and of rows of tables (`tr[3]`).

    Raises:
        Refusal: `corrupt-document`, `too-deep`, `too-large`, `empty-document`.
    """
    return read_rtf(path.read_bytes(), options)


def read_rtf(data: bytes, options: ParseOptions) -> Parse:
    """As `parse_rtf`, of a rich text that lies in another file."""
    source = data.decode("latin-1")
    if not source.startswith("{\\rtf"):
        raise Refusal("corrupt-document", "no rich text")
    reader = _Reader(Writer(options.max_output_bytes))
    reader.read(source)
    if reader.out.empty:
        raise Refusal("empty-document", "the document has no visible text")
    markdown, spans = reader.out.finish()
    facts = {name: plain_line(text) for name, text in reader.facts.items() if plain_line(text)}
    hidden = [
        *reader.hidden.taken(),
        *(HiddenText(kind="metadata", text=text) for text in facts.values()),
    ]
    meta = BodyMeta(
        title=told_title(line(facts.get("title"))),
        language=UNKNOWN,
        media_type=RTF,
        author=line(facts.get("author")) or None,
        date=reader.created,
    )
    document = ParsedDocument(
        markdown=markdown, hidden=tuple(dict.fromkeys(hidden)), meta=meta, spans=spans
    )
    told = ["the end of the file is missing: read as far as it goes"] if reader.is_cut else []
    return Parse(document, told)


class _Reader:
    def __init__(self, out: Writer) -> None:
        self.out = out
        self.hidden = Unseen()
        self.facts: dict[str, str] = {}
        self.created: str | None = None
        self.is_cut = False
        self._state = _State()
        self._stack: list[_State] = []
        self._pieces: dict[str, Runs] = {}
        self._bytes = bytearray()
        self._skipping = 0
        """Characters still to be passed over: they stand in for a Unicode one."""
        self._codepage = "cp1252"
        self._fonts: dict[int, str] = {}
        self._colors: list[list[int] | None] = []
        self._color: dict[str, int] = {}
        self._styles: dict[int, int] = {}
        """Levels of styles that head sections."""
        self._looks: dict[int, int] = {}
        self._quotes: set[int] = set()
        self._titles: set[int] = set()
        self._titled = False
        """Under the title of the document, which takes the first level."""
        self._paragraphs = self._row_count = 0
        self._marker = ""
        self._row = TableRow()
        self._shape: list[str] = []
        self._rows: list[TableRow] = []
        self._notes: list[str] = []
        self._moment: dict[str, int] = {}
        self._links = Links()
        self._address = ""
        """Of the field that comes."""
        self._star = False

    def read(self, source: str) -> None:
        """The whole text, then its footnotes."""
        at, end = 0, len(source)
        while at < end:
            match = _TOKEN.match(source, at)
            if match is None:
                at += 1
                continue
            at = match.end()
            if match[1] == "bin" and match[2]:
                at += max(0, min(int(match[2]), end))
            else:
                self._token(match)
        # The whole text is one group.
        self.is_cut = bool(self._stack)
        self._end_paragraph()
        self._end_table()
        for number_, note in enumerate(self._notes, 1):
            self.out.block(f"[^{number_}]: {self._links.written(note)}")

    def _token(self, match: re.Match[str]) -> None:
        word, number, octet, sign, brace, text = match.groups()
        if brace:
            self._brace(brace)
        elif self._state.skip:
            return
        elif word:
            self._word(word, int(number) if number else None)
        elif octet:
            self._octet(int(octet, 16))
        elif text:
            self._text(text)
        elif sign:
            self._sign(sign)

    # --- groups ---------------------------------------------------------------------------------

    def _brace(self, brace: str) -> None:
        self._flush()
        self._skipping = 0
        self._star = False
        if brace == "{":
            if len(self._stack) > _MOST_GROUPS:
                raise Refusal("too-deep", f"groups nested more than {_MOST_GROUPS} deep")
            self._stack.append(self._state)
            # Of a text that is there twice, the one without Unicode comes first.
            skip = self._state.skip or self._state.twice
            self._state.twice = False
            self._state = replace(self._state, skip=skip)
            return
        if not self._stack:
            return
        before, self._state = self._state, self._stack.pop()
        if before.linked and not self._state.linked:
            self._put_run(self._links.closed(self._address))
        if before.target != self._state.target and not before.skip:
            self._end_group(before.target)

    def _end_group(self, target: str) -> None:
        runs = self._taken(target)
        text = plain_text(runs)
        match target:
            case "listtext" | "pntext":
                self._marker = " ".join(text.split())
            case "footnote":
                if text.strip() and len(self._notes) < _MOST_NOTES:
                    self._notes.append(literal(runs, span))
                    # The mark is ours, and no text may hold these signs.
                    self._put(f"\ufffe{len(self._notes)}\uffff")
            case "fldinst":
                found = _HYPERLINK.search(text)
                self._address = found[1] if found else ""
                self.hidden.add("attribute", "" if found or not is_sentence(text) else text)
            case "annotation":
                self.hidden.add("comment", text)
            case "header":
                self.hidden.add("notes", text)
            case "shptxt":
                self.out.block(self._noted(literal(runs, paragraph)), self._place())
            case "title" | "author" | "subject" | "keywords" | "doccomm" | "company":
                self.facts[target] = text
            case "creatim":
                self._created()

    def _created(self) -> None:
        year, month, day = (self._moment.get(key, 0) for key in ("yr", "mo", "dy"))
        if 1980 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= 31:
            self.created = f"{year}-{month:02}-{day:02}"

    # --- control words --------------------------------------------------------------------------

    def _word(self, word: str, number: int | None) -> None:
        if word == "u" and number is not None:
            self._unicode(number)
            return
        self._flush()
        self._skipping = 0
        state = self._state
        if (self._star and word not in KEPT) or word in SKIPPED:
            state.skip = True
        elif word in WHOLE:
            state.target = WHOLE[word]
        elif word == "upr":
            state.twice = True
        elif word in SIGNS:
            self._put(SIGNS[word])
        elif word in _LAYOUT:
            _LAYOUT[word](self)
        else:
            self._looks_like(word, number)
        self._star = False

    def _paragraph_look(self) -> None:
        self._state.style = self._state.level = 0
        self._state.outline = None
        self._state.in_table = False

    def _character_look(self) -> None:
        self._state.hidden = self._state.deleted = self._state.painted = False
        self._state.color, self._state.size = 0, 24
        self._state.ground, self._state.width, self._state.lift = 0, 100, 0
        self._state.bold = self._state.italic = self._state.struck = False
        self._state.raised = False

    def _on_the_line(self) -> None:
        self._state.raised = False

    def _field_text(self) -> None:
        if self._address and self._state.target == "body":
            self._state.linked = True
            self._put_run(Links.opened)

    def _other_style(self) -> None:
        """In the head: a style of letters, and none of paragraphs."""
        if self._state.target == "stylesheet":
            self._state.style = -1

    def _row_starts(self) -> None:
        self._shape = []

    def _joins_left(self) -> None:
        self._shape.append("<")

    def _joins_above(self) -> None:
        self._shape.append("^")

    def _in_table(self) -> None:
        self._state.in_table = True

    def _line(self) -> None:
        self._put("\n")

    def _cell_edge(self, edge: int) -> None:
        """A cell of the row's definition is complete: its merging was told before its edge."""
        if len(self._row.merged) >= _MOST_CELLS:
            return
        self._row.merged.append(self._shape[-1] if self._shape else "")
        self._row.edges.append(edge)
        self._shape = []

    def _looks_like(self, word: str, number: int | None) -> None:
        """What the text that follows looks like, and what a table of the head says."""
        state = self._state
        value = number or 0
        if word in _NUMBERS:
            setattr(state, _NUMBERS[word], value)
        elif word in _SWITCHES:
            setattr(state, _SWITCHES[word], number != 0)
        elif word == "uc":
            state.unicode_skip = max(0, min(value, 10))
        elif word == "cellx":
            self._cell_edge(value)
        elif word in {"shpleft", "shptop"} and not _FAR_LEFT < value < _FAR_RIGHT:
            state.hidden = True
        elif word == "ilvl":
            state.level = max(0, min(value, 8))
        elif word in _COLORS and state.target == "colors":
            self._color[word] = value
        elif word in _DAYS and state.target == "creatim":
            self._moment[word] = value
        else:
            self._charset(word, value)

    def _charset(self, word: str, value: int) -> None:
        """The charset of a font, or of all text that has no such font."""
        font = self._state.font
        if word == "fcharset":
            self._fonts[font] = CHARSETS.get(value, "")
        elif word == "cpg":
            self._fonts[font] = _known(value) or self._fonts.get(font, "")
        elif word == "ansicpg" and value:
            self._codepage = _known(value) or "cp1252"
        elif word in CODEPAGES:
            self._codepage = CODEPAGES[word]

    def _end_colors(self, count: int) -> None:
        """Each semicolon ends a colour; one without parts is the program's own."""
        for _ in range(count):
            parts = [self._color.get(part) for part in _COLORS]
            self._colors.append(None if None in parts else [part or 0 for part in parts])
            self._color = {}

    # --- text -----------------------------------------------------------------------------------

    def _unicode(self, number: int) -> None:
        self._flush()
        code = number % 65536
        if code < _OURS:
            self._put(chr(code))
        self._skipping = self._state.unicode_skip

    def _octet(self, value: int) -> None:
        if self._skipping:
            self._skipping -= 1
        else:
            self._bytes.append(value)

    def _text(self, text: str) -> None:
        if self._skipping:
            passed = min(self._skipping, len(text))
            self._skipping -= passed
            text = text[passed:]
        self._bytes += text.encode("latin-1")

    def _sign(self, sign: str) -> None:
        if sign == "*":
            self._star = True
        elif sign in "\r\n":
            self._flush()
            self._end_paragraph()
        elif sign in "\\{}":
            self._octet(ord(sign))
        elif sign in "~_":
            self._flush()
            self._put({"~": " ", "_": "\u2011"}[sign])

    def _flush(self) -> None:
        """Decode what was collected: bytes of a letter may come one by one."""
        if self._bytes:
            charset = self._fonts.get(self._state.font) or self._codepage
            self._put(self._bytes.decode(charset, "replace"))
            self._bytes.clear()

    def _put(self, text: str) -> None:
        if self._state.target == "stylesheet":
            self._name_style(text)
            return
        if self._state.target == "colors":
            self._end_colors(text.count(";"))
            return
        text = raised(text) if self._state.raised else text
        kind = self._unseen() if self._state.target in {"body", "shptxt", "footnote"} else None
        if kind:
            self.hidden.add(kind, text)
        else:
            self._pieces.setdefault(self._state.target, []).append((text, self._look_now()))

    def _put_run(self, run: tuple[str, int]) -> None:
        self._pieces.setdefault(self._state.target, []).append(run)

    def _look_now(self) -> int:
        """How text stands out from what its paragraph looks like by its style."""
        state = self._state
        look = look_of(bold=state.bold, italic=state.italic, struck=state.struck)
        return look & ~(self._looks.get(state.style, 0) & ~STRUCK)

    def _unseen(self) -> HiddenKind | None:
        state = self._state
        if state.deleted:
            return "tracked-change"
        if state.hidden:
            return "invisible-style"
        own = self._colour(state.color)
        behind = self._colour(state.ground) if state.ground else None
        unknown = (
            state.painted or (state.in_table and not behind) or bool(state.ground and not behind)
        )
        colours = None if unknown or own is None else (own, behind or [255, 255, 255])
        return unreadable(state.size, state.width, state.lift, colours)

    def _colour(self, index: int) -> list[int] | None:
        return self._colors[index] if 0 <= index < len(self._colors) else None

    def _name_style(self, name: str) -> None:
        name = name.strip().rstrip(";")
        self._looks.setdefault(self._state.style, self._look_now())
        if names_quotation(name):
            self._quotes.add(self._state.style)
        if names_title(name):
            self._titles.add(self._state.style)
        match = HEADING_NAME.match(name)
        outline = self._state.outline
        if match:
            self._styles[self._state.style] = int(match[1])
        elif outline is not None and 0 <= outline < 9:
            self._styles.setdefault(self._state.style, outline + 1)

    # --- blocks ---------------------------------------------------------------------------------

    def _place(self) -> Place:
        return Place(path=f"p[{max(1, self._paragraphs)}]")

    def _end_paragraph(self) -> None:
        self._flush()
        if self._state.target != "body":
            self._put("\n")
            return
        if self._state.in_table:
            # A paragraph within a cell.
            self._put(" ")
            return
        runs = self._taken()
        text = plain_text(runs)
        marker, self._marker = self._marker, ""
        self._paragraphs += 1
        if not text.strip():
            return
        self._end_table()
        level = self._heading_level()
        written = literal(runs, partial(paragraph, lists=not marker))
        if level and len(text) < 1000:
            self.out.heading(_NOTE.sub(r"[^\1]", text), level, self._place())
        elif marker:
            indent = "    " * self._state.level
            mark = _NUMBER_MARK.fullmatch(marker)
            told = f"{mark[1]}." if mark else "-"
            lettered = not mark and any(c.isalnum() for c in marker)
            lead = f"{span(marker)} " if lettered else ""
            item = " ".join(written.split())
            self.out.item(self._noted(f"{indent}{told} {lead}{item}"), self._place())
        else:
            if self._state.style in self._quotes:
                written = "\n".join(f"> {line_}".rstrip() for line_ in written.split("\n"))
            self.out.block(self._noted(written), self._place())

    def _heading_level(self) -> int:
        if self._state.style in self._titles:
            self._titled = True
            return 1
        level = self._styles.get(self._state.style, 0)
        outline = self._state.outline
        if outline is not None and 0 <= outline < 9:
            level = outline + 1
        return level + 1 if self._titled and 0 < level < 6 else level

    def _taken(self, target: str = "body") -> Runs:
        by_look = groupby(self._pieces.pop(target, []), key=lambda run: run[1])
        return [(_paired("".join(text for text, _ in runs)), look) for look, runs in by_look]

    def _noted(self, literal: str) -> str:
        return self._links.written(_NOTE.sub(r"[^\1]", literal))

    def _end_nested(self) -> None:
        self._put(" ")

    def _end_cell(self) -> None:
        if self._state.target != "body":
            self._put(" ")
        elif len(self._row.cells) < _MOST_CELLS:
            runs = self._taken()
            self._row.cells.append(runs if plain_text(runs).strip() else [])
            self._marker = ""

    def _end_row(self) -> None:
        row, self._row = self._row, TableRow()
        if row.cells:
            self._rows.append(row)

    def _end_table(self) -> None:
        if any(self._row.cells):
            self._end_row()
        rows, self._rows = [cells for cells in grid(self._rows) if any(cells)], []
        if not rows:
            return
        width = max(map(len, rows))
        texts = [plain_line(plain_text(runs)) for runs in rows[0]]
        head = self._noted(table_row(texts + [""] * (width - len(texts))))
        self.out.block(head, self._place_of_row())
        self.out.add("\n" + table_rule(width))
        for cells in rows[1:]:
            self.out.add("\n")
            self.out.add(self._noted(styled_row(cells)), self._place_of_row())

    def _place_of_row(self) -> Place:
        self._row_count += 1
        return Place(path=f"tr[{self._row_count}]")


def _paired(text: str) -> str:
    """Letters outside the basic plane come in two halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _known(number: int) -> str | None:
    try:
        return codecs.lookup(MAC_PAGES.get(number, f"cp{number}")).name
    except LookupError:
        return None


_COLORS = ("red", "green", "blue")
_DAYS = frozenset({"yr", "mo", "dy"})
_NUMBERS = {
    "f": "font", "deff": "font", "cf": "color", "fs": "size", "s": "style",
    "outlinelevel": "outline", "cb": "ground", "chcbpat": "ground", "highlight": "ground",
    "charscalex": "width", "up": "lift",
}  # fmt: skip
_SWITCHES = {
    "b": "bold", "i": "italic", "strike": "struck", "striked": "struck",
    "super": "raised",
    "v": "hidden", "webhidden": "hidden", "deleted": "deleted", "cbpat": "painted",
    "clcbpat": "painted",
}  # fmt: skip
_LAYOUT: dict[str, Callable[[_Reader], None]] = {
    "par": _Reader._end_paragraph,
    "sect": _Reader._end_paragraph,
    "page": _Reader._end_paragraph,
    "line": _Reader._line,
    "cell": _Reader._end_cell,
    "nestcell": _Reader._end_nested,
    "row": _Reader._end_row,
    "trowd": _Reader._row_starts,
    "clmrg": _Reader._joins_left,
    "clvmrg": _Reader._joins_above,
    "intbl": _Reader._in_table,
    "pard": _Reader._paragraph_look,
    "plain": _Reader._character_look,
    "cs": _Reader._other_style,
    "fldrslt": _Reader._field_text,
    "sub": _Reader._on_the_line,
    "nosupersub": _Reader._on_the_line,
}
