"""ODT: headings with their numbers, lists, tables, notes; deletions and remarks are hidden."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contracts.artifacts import HiddenText, ParsedDocument, Place
from kernel.errors import Refusal
from kernel.media import ODT
from services.converter.parsing.archive import Archive
from services.converter.parsing.embedded import list_files
from services.converter.parsing.hidden import Unseen, is_sentence
from services.converter.parsing.literal import heading, paragraph, span
from services.converter.parsing.looks import Runs, literal, plain_text
from services.converter.parsing.markdown import LONGEST_REPEATED
from services.converter.parsing.odf import (
    BOXES,
    CONTENT,
    DRAW,
    OFFICE,
    SHAPES,
    STYLE,
    SVG,
    TABLE,
    TEXT,
    XLINK,
    Styles,
    check,
    is_far,
    metadata,
    plain,
    whole,
)
from services.converter.parsing.odf_grounds import Grounds
from services.converter.parsing.odf_inline import NOTE_MARK, Inline, squeezed
from services.converter.parsing.odf_objects import Objects
from services.converter.parsing.office import part
from services.converter.parsing.result import File, Parse
from services.converter.parsing.table_text import styled_row, table_row, table_rule
from services.converter.parsing.wordml import parse_xml
from services.converter.parsing.writer import Writer
from services.converter.parsing.xml_paths import Paths
from services.converter.settings import ParseOptions

_INDEXES = frozenset(
    TEXT + name
    for name in (
        "table-of-content", "illustration-index", "table-index", "object-index", "user-index",
        "alphabetical-index", "sequence-decls",
    )
)  # fmt: skip
_BLOCKS = frozenset({TEXT + "p", TEXT + "h", TABLE + "table-row", TEXT + "list-item"})
_MOST_REPEATED = 100
_MOST_COLUMNS = 1000
_DEEPEST_LIST = 8


def parse_odt(path: Path, options: ParseOptions) -> Parse:
    """A text document.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `too-large`, `empty-document`.
    """
    with Archive(path, options) as archive:
        check(archive)
        root, design = parse_xml(archive.read(CONTENT)), part(archive, "styles.xml")
        meta, facts = metadata(archive, ODT)
        objects = Objects(archive)
    out = Writer(options.max_output_bytes)
    writer = TextWriter(root, design, objects, out, options.max_depth)
    body = root.find(f"{OFFICE}body/{OFFICE}text")
    if body is None:
        raise Refusal("corrupt-document", "the container holds no text document")
    writer.write(body)
    return finished(writer, meta, facts, archive.warnings, objects.files)


def finished(
    writer: "TextWriter",
    meta: Any,
    facts: list[HiddenText],
    warnings: list[str],
    files: Sequence[File],
) -> Parse:
    """The parse of what was written.

    Raises:
        Refusal: `empty-document`, `too-large`.
    """
    writer.write_notes()
    list_files(writer.out, files)
    if writer.out.empty:
        raise Refusal("empty-document", "the document has no visible text")
    markdown, spans = writer.out.finish()
    hidden = tuple(dict.fromkeys([*writer.hidden.taken(), *facts]))
    document = ParsedDocument(markdown=markdown, hidden=hidden, meta=meta, spans=spans)
    return Parse(document, warnings, files=tuple(files))


class TextWriter:
    """Writes the blocks of a text, a text box or a slide."""

    def __init__(
        self, root: Any, design: Any | None, objects: Objects, out: Writer, most_depth: int
    ) -> None:
        self.out = out
        self._objects = objects
        self.hidden = Unseen()
        self.styles = Styles(root, design)
        self.place: Place | None = None
        """Where all of it lies, if not each block in its own place (a shape of a slide)."""
        self._inline = Inline(self.styles, Grounds(self.styles, design), self.hidden, objects)
        self._paths = Paths(root, _BLOCKS)
        self._numbers: dict[int, int] = {}
        self._most = most_depth
        self._titled = any(map(self._is_title, root.iter(TEXT + "p")))
        """There is a title of the document, which takes the first level."""
        if design is not None:
            for master in design.iter(STYLE + "header", STYLE + "footer"):
                self.hidden.add("notes", plain(master))

    def write(self, parent: Any, depth: int = 0) -> None:
        """All blocks in an element."""
        if depth > self._most:
            raise Refusal("too-deep", f"nested more than {self._most} deep")
        for element in parent:
            if isinstance(element.tag, str):
                self._block(element, depth)

    def write_notes(self) -> None:
        """Footnotes, at the end."""
        for key, runs in self._inline.notes:
            self.out.block(f"[^{key}]: {self._marked(literal(runs, span))}")

    def title_of(self, shape: Any) -> str:
        """What is seen of a shape's text, as a heading."""
        lines = (self._inline.text(one) for one in shape.iter(TEXT + "p", TEXT + "h"))
        return self._marked(heading(" ".join(" ".join(filter(None, lines)).split())))

    def _block(self, element: Any, depth: int) -> None:
        match element.tag:
            case t if t == TEXT + "h":
                self._heading(element)
            case t if t == TEXT + "p" and self._is_title(element):
                self._title(element)
                self._boxes(element, depth)
            case t if t == TEXT + "p":
                runs = self._inline.runs(element)
                self.out.block(self._quoted(element, self._literal(runs)), self._place_of(element))
                self._boxes(element, depth)
            case t if t == TEXT + "list":
                self.out.gap()
                self._list(element, 0, None, depth)
            case t if t == TABLE + "table":
                self._table(element)
            case t if t in BOXES:
                self._box(element, depth)
            case t if t not in _INDEXES and not self._kept_back(element):
                self.write(element, depth + 1)

    def _kept_back(self, element: Any) -> bool:
        """Whether a block is for the scanner only."""
        if element.tag == TEXT + "tracked-changes":
            for deletion in element.iter(TEXT + "deletion"):
                self.hidden.add("tracked-change", " ".join(map(plain, deletion.iter(TEXT + "p"))))
        elif element.tag == OFFICE + "annotation":
            self.hidden.add("comment", plain(element))
        elif element.tag == TEXT + "user-field-decls":
            for field in element:
                value = field.get(OFFICE + "string-value") or ""
                self.hidden.add("metadata", value if is_sentence(value) else "")
        elif element.tag == TEXT + "section" and _is_hidden(element):
            self.hidden.add("invisible-style", plain(element))
        else:
            return False
        return True

    def _place_of(self, element: Any) -> Place | None:
        path = self._paths.of(element)
        return self.place or (Place(part=CONTENT, path=path) if path else None)

    def _is_title(self, element: Any) -> bool:
        """A paragraph of the text itself, and not of a table, a list or a slide."""
        among_text = element.getparent().tag in {OFFICE + "text", TEXT + "section"}
        named = among_text and self.styles.is_title(element.get(TEXT + "style-name"))
        return bool(named and plain(element).strip())

    def _title(self, element: Any) -> None:
        text = heading(self._inline.text(element))
        self.out.block(f"# {self._marked(text)}" if text else "", self._place_of(element))

    def _heading(self, element: Any) -> None:
        level = whole(element.get(TEXT + "outline-level"), 1)
        text = self._inline.text(element)
        if not text:
            return
        numbered = self.styles.is_outlined(element.get(TEXT + "style-name"))
        header = element.get(TEXT + "is-list-header") == "true"
        number = self._number(level) if numbered and not header else ""
        literal = self._marked(heading(f"{number} {text}".strip()))
        marks = "#" * min(level + self._titled, 6)
        self.out.block(f"{marks} {literal}", self._place_of(element))

    def _number(self, level: int) -> str:
        """The number of a heading by the outline of the document, which no text holds."""
        for deeper in [one for one in self._numbers if one > level]:
            del self._numbers[deeper]
        form = self.styles.outline.get(level)
        kind = "" if form is None else form.get(STYLE + "num-format") or ""
        first = whole(form.get(TEXT + "start-value"), 1) if form is not None else 1
        self._numbers[level] = self._numbers[level] + 1 if level in self._numbers else first
        if form is None or not kind:
            return ""
        shown = whole(form.get(TEXT + "display-levels"), 1)
        levels = range(max(1, level - shown + 1), level + 1)
        numbers = ".".join(_numeral(self._numbers.get(one, 1), kind) for one in levels)
        before, behind = (form.get(f"{STYLE}num-{side}") or "" for side in ("prefix", "suffix"))
        return f"{before}{numbers}{behind}"

    # --- lists ----------------------------------------------------------------------------------

    def _list(self, element: Any, level: int, style: str | None, depth: int) -> None:
        if depth > self._most:
            raise Refusal("too-deep", f"nested more than {self._most} deep")
        style = element.get(TEXT + "style-name") or style
        ordered, number = self._numbering(style, level)
        for item in element:
            if item.tag not in {TEXT + "list-item", TEXT + "list-header"}:
                continue
            number = whole(item.get(TEXT + "start-value"), number)
            label = f"{number}." if ordered else "-"
            number += 1
            self._item(item, level, style, depth, label)

    def _item(self, item: Any, level: int, style: str | None, depth: int, label: str) -> None:
        """The first paragraph has the mark, following ones stand under it."""
        indent = "    " * min(level, _DEEPEST_LIST)
        first = True
        for child in item:
            if child.tag == TEXT + "list":
                self._list(child, level + 1, style, depth + 1)
            elif child.tag == TEXT + "p":
                text = " ".join(self._literal(self._inline.runs(child)).split())
                if text:
                    if first:
                        self.out.item(f"{indent}{label} {text}", self._place_of(child))
                    else:
                        self.out.block(f"{indent}    {text}", self._place_of(child))
                    first = False
                self._boxes(child, depth)
            elif isinstance(child.tag, str):
                self._block(child, depth + 1)

    def _numbering(self, style: str | None, level: int) -> tuple[bool, int]:
        form = self.styles.lists.get(style or "")
        for one in () if form is None else form:
            if whole(one.get(TEXT + "level"), 1) == level + 1:
                number = one.tag == TEXT + "list-level-style-number"
                shown = bool(one.get(STYLE + "num-format"))
                return number and shown, whole(one.get(TEXT + "start-value"), 1)
        return False, 1

    # --- tables and boxes -----------------------------------------------------------------------

    def _table(self, table: Any) -> None:
        rows: list[tuple[list[Runs], Place | None]] = []
        above: dict[int, tuple[int, Runs]] = {}
        for row in table.iter(TABLE + "table-row"):
            if next(row.iterancestors(TABLE + "table")) is table:
                if _is_collapsed(row):
                    self.hidden.add("invisible-style", plain(row))
                    continue
                texts = self._row(row, above)
                times = min(whole(row.get(TABLE + "number-rows-repeated")), _MOST_REPEATED)
                rows += [(texts, self._place_of(row))] * (times if any(texts) else 1)
        if not any(text for texts, _ in rows for text in texts):
            return
        columns = max(len(texts) for texts, _ in rows)
        head, place = rows[0]
        texts_ = [NOTE_MARK.sub(r"[^\1]", squeezed(plain_text(runs))) for runs in head]
        self.out.block(table_row(texts_ + [""] * (columns - len(head))), place)
        self.out.add("\n" + table_rule(columns))
        for texts, place in rows[1:]:
            self.out.add("\n")
            self.out.add(self._marked(styled_row(texts)), place)

    def _row(self, row: Any, above: dict[int, tuple[int, Runs]]) -> list[Runs]:
        """Texts of a row; `above`, by column, has cells that reach down into so many rows."""
        texts: list[Runs] = []
        for cell in row:
            times = min(whole(cell.get(TABLE + "number-columns-repeated")), _MOST_COLUMNS)
            first = len(texts)
            if cell.tag == TABLE + "covered-table-cell":
                texts += [above.get(first + n, (0, []))[1] for n in range(times)]
            elif cell.tag == TABLE + "table-cell":
                text = self._cell(cell)
                texts += [text] * times
                down = whole(cell.get(TABLE + "number-rows-spanned"))
                across = min(whole(cell.get(TABLE + "number-columns-spanned")), _MOST_COLUMNS)
                if len(plain_text(text)) <= LONGEST_REPEATED:
                    above |= {first + n: (down, text) for n in range(across)}
            if len(texts) >= _MOST_COLUMNS:
                break
        for column, (down, text) in list(above.items()):
            above[column] = (down - 1, text)
            if down <= 1:
                del above[column]
        while texts and not texts[-1]:
            texts.pop()
        return texts

    def _cell(self, cell: Any) -> Runs:
        parts = [self._inline.runs(p) for p in cell.iter(TEXT + "p", TEXT + "h")]
        runs: Runs = []
        for one in parts:
            if plain_text(one).strip():
                runs += [(" ", 0), *one] if runs else one
        return runs

    def _boxes(self, element: Any, depth: int) -> None:
        """What floats at a paragraph."""
        for box in element.iter(*BOXES):
            if next(box.iterancestors(TEXT + "p", *BOXES), None) is element:
                self._box(box, depth)

    def _box(self, box: Any, depth: int) -> None:
        if depth > self._most:
            raise Refusal("too-deep", f"nested more than {self._most} deep")
        if not self._is_seen(box):
            return
        if box.tag in SHAPES:
            self._paragraphs(box, depth)
            return
        for inner in box:
            if inner.tag == DRAW + "text-box":
                self._paragraphs(inner, depth)
            elif inner.tag == TABLE + "table":
                self._table(inner)
            elif inner.tag == DRAW + "object":
                self._object(inner)
            elif inner.tag in BOXES:
                self._box(inner, depth + 1)

    def _is_seen(self, box: Any) -> bool:
        """Whether a box lies on the page; what is told of it, and what is not seen, is kept."""
        for told in box:
            if told.tag in {SVG + "title", SVG + "desc"}:
                self.hidden.add("alt-text", plain(told))
        off = self.place is None and is_far(box)
        if off:
            self.hidden.add("off-page", plain(box))
        return not off

    def _object(self, shown: Any) -> None:
        around = next(shown.iterancestors(TEXT + "p"), None)
        place = self.place if around is None else self._place_of(around)
        if around is None:
            self.out.block(paragraph(self._objects.formula(shown)), place)
        for block in self._objects.chart(shown.get(XLINK + "href")):
            self.out.block(block, place)

    def _paragraphs(self, parent: Any, depth: int) -> None:
        wanted = {TEXT + "p", TEXT + "h", TEXT + "list", TABLE + "table"}
        for child in parent:
            if child.tag in wanted:
                self._block(child, depth + 1)

    # --- literal --------------------------------------------------------------------------------

    def _literal(self, runs: Runs) -> str:
        return self._marked(literal(runs, _paragraph))

    def _quoted(self, element: Any, text: str) -> str:
        if not self.styles.is_quote(element.get(TEXT + "style-name")):
            return text
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if text else ""

    def _marked(self, literal: str) -> str:
        """Marks of notes as Markdown has them; what else is left of their signs goes."""
        return self._inline.links.written(NOTE_MARK.sub(r"[^\1]", literal))


def _paragraph(text: str) -> str:
    return paragraph(squeezed(text), lists=True)


def _is_hidden(section: Any) -> bool:
    display, state = section.get(TEXT + "display"), section.get(TEXT + "is-hidden")
    # Whether a condition holds stands beside it; where it does not, nobody can say that it is seen.
    return bool(display == "none" or state == "true" or (display == "condition" and not state))


def _is_collapsed(row: Any) -> bool:
    """Whether a row, or a group of rows around it, is folded away."""
    around = (row, *row.iterancestors(TABLE + "table-row-group"))
    hidden = {"collapse", "filter"}
    return any(
        one.get(TABLE + "visibility") in hidden or one.get(TABLE + "display") == "false"
        for one in around
    )


def _numeral(number: int, kind: str) -> str:
    """A number in one of the forms of ODF: `1`, `a`, `A`, `i`, `I`."""
    if kind in {"a", "A"}:
        letter = chr(ord(kind) + (number - 1) % 26)
        return letter * ((number - 1) // 26 + 1)
    if kind in {"i", "I"} and number < 4000:
        text = ""
        for value, sign in _ROMAN:
            count, number = divmod(number, value)
            text += sign * count
        return text if kind == "i" else text.upper()
    return str(number)


_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
