"""WordprocessingML before docling sees it: hidden text out, footnotes in, runs joined."""

import re
from collections.abc import Collection
from itertools import groupby
from operator import itemgetter
from typing import Any

from lxml import etree

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from kernel.errors import Refusal
from services.converter.parsing.archive import Damaged
from services.converter.parsing.literal import raised
from services.converter.parsing.looks import QUOTED, look_of, signed
from services.converter.parsing.marks import unmarked
from services.converter.parsing.word_base import Styles, W, is_on, raw_text, text_of, value
from services.converter.parsing.word_unseen import UnseenRuns, run_text, take_blocks

__all__ = ["Styles", "W", "text_of", "value"]

_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

_EMPHASIS = tuple(
    W + name
    for name in (
        "b", "bCs", "i", "iCs", "u", "strike", "dstrike", "vertAlign", "caps", "smallCaps",
        "color", "sz", "szCs", "highlight", "shd", "lang", "noProof", "kern", "spacing", "w",
        "position", "em", "effect", "outline", "shadow", "emboss", "imprint", "bdr",
    )
)  # fmt: skip
_STYLED = (W + "b", W + "i")
_CODE = re.compile(
    r"\s*(?:async\s+)?(?:def|class|if|elif|while|for|with|except|finally|try|catch|switch|function"
    r"|func|fn|sub|proc)\s+\S.*:\s*\Z",
    re.DOTALL,
)
_UNSEEN = frozenset(
    W + name for name in ("proofErr", "bookmarkStart", "bookmarkEnd", "lastRenderedPageBreak")
)
"""What stands between and in runs, and says nothing."""

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


def parse_xml(data: bytes) -> Any:
    """Root of an XML part, without entities, network or document type.

    Raises:
        Refusal: `corrupt-document`, `too-deep`.
    """
    if re.search(rb"<!(?:DOCTYPE|ENTITY)", data[:65536], re.IGNORECASE):
        raise Refusal("corrupt-document", "a part declares a document type")
    data = usual(data)
    # Comments of the markup go: docling does not expect them.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        # An id that is there twice makes no other text; office programs read such files, too.
        collect_ids=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if "depth" in str(error).lower():
            raise Refusal("too-deep", "elements nested too deeply") from error
        raise Damaged("a part is not well-formed XML") from error
    if root.getroottree().docinfo.doctype:
        raise Refusal("corrupt-document", "a part declares a document type")
    return root


def usual(data: bytes) -> bytes:
    """A part with the names that programs write by default. Those of the strict form (ISO 29500,
    "Strict Open XML") differ throughout, and libraries do not know them."""
    return _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)


def in_code(paragraph: Any) -> bool:
    """Whether docling takes a paragraph for code by its first word: a mark would hide it."""
    text = "".join(t.text or "" for t in paragraph.iter(W + "t"))
    return _CODE.match(text) is not None


def clean(root: Any, styles: Styles, footnotes: dict[str, str]) -> list[HiddenText]:
    """Change the document in place; return what was hidden in it."""
    hidden = clean_part(root, styles, footnotes)
    _append_notes(root, footnotes)
    return hidden


def clean_part(root: Any, styles: Styles, footnotes: Collection[str] = ()) -> list[HiddenText]:
    """As `clean`, of a part that has no body, such as the footnotes themselves.

    Of no use in a text but to forge a mark of ours are the characters that are taken out of it.
    """
    hidden: list[HiddenText] = []
    for text in root.iter(W + "t"):
        text.text = unmarked(text.text or "")
    _fill_fields(root)
    _take_revisions(root, hidden)
    take_blocks(root, hidden)
    take_alt_texts(root, hidden)
    unseen = _Unseen(styles, hidden)
    for paragraph in list(root.iter(W + "p")):
        style_id = value(paragraph.find(W + "pPr"), "pStyle")
        if styles.is_contents(style_id):
            _remove(paragraph)
            continue
        styled = not in_code(paragraph)
        struck: list[Any] = []
        for run in list(paragraph.iter(W + "r")):
            if unseen.takes(run, style_id):
                continue
            if _is_struck(run, style_id, styles):
                struck += list(run.iter(W + "t"))
            else:
                _mark_struck(struck)
            if styled:
                _raise(run, styles)
                _sign(run, style_id, styles)
            _note_reference(run, footnotes)
            _plain(run.find(W + "rPr"))
        _mark_struck(struck)
        unseen.close()
        properties = paragraph.find(W + "pPr")
        if properties is None:
            # Docling looks for it once a run, and would go through all of them where it is missing.
            paragraph.insert(0, etree.Element(W + "pPr"))
        else:
            _plain(properties.find(W + "rPr"))
        if styled and styles.is_quote(style_id):
            _quote(paragraph)
        _join_runs(paragraph)
    return hidden


class _Unseen:
    """Hidden runs one after the other are one text; and so are those that are doubtful."""

    def __init__(self, styles: Styles, hidden: list[HiddenText]) -> None:
        self._runs, self._hidden = UnseenRuns(styles), hidden
        self._taken: list[tuple[HiddenKind, str]] = []
        self._doubted: list[tuple[HiddenKind, str]] = []

    def takes(self, run: Any, style_id: str | None) -> bool:
        """Whether a run is hidden: then it is taken out."""
        kind = self._runs.of(run, style_id)
        if kind:
            self._taken.append((kind, run_text(run)))
            _remove(run)
            return True
        _keep_all(self._hidden, self._taken)
        doubt, text = self._runs.doubt(run, style_id), run_text(run)
        if doubt:
            self._doubted.append((doubt, text))
        elif self._doubted and text.strip():
            _keep_all(self._hidden, self._doubted)
        return False

    def close(self) -> None:
        """The end of a paragraph."""
        _keep_all(self._hidden, self._taken)
        _keep_all(self._hidden, self._doubted)


def _keep(hidden: list[HiddenText], kind: HiddenKind, text: str) -> None:
    text = text.strip()
    if text:
        hidden.append(HiddenText(kind=kind, text=text))


def _keep_all(hidden: list[HiddenText], pieces: list[tuple[HiddenKind, str]]) -> None:
    for kind, parts in groupby(pieces, key=itemgetter(0)):
        _keep(hidden, kind, re.sub(r"\s+", " ", "".join(text for _, text in parts)))
    pieces.clear()


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _take_revisions(root: Any, hidden: list[HiddenText]) -> None:
    """Deletions one after the other are one text, over the ends of paragraphs too."""
    revisions = (W + "del", W + "moveFrom")
    if next(root.iter(*revisions), None) is None:
        return
    pieces: list[str] = []
    taken: list[Any] = []
    for element in root.iter(*revisions, W + "t", W + "p"):
        if element.tag == W + "p":
            pieces += [" "] if pieces else []
        elif element.tag == W + "t":
            if element.text and next(element.iterancestors(*revisions), None) is None:
                _keep(hidden, "tracked-change", _squeezed(pieces))
                pieces.clear()
        elif element.getparent() is not None and element.getparent().tag != W + "rPr":
            within = next(element.iterancestors(*revisions), None) is not None
            pieces += [] if within else [raw_text(element)]
            taken.append(element)
    _keep(hidden, "tracked-change", _squeezed(pieces))
    for element in taken:
        _remove(element)


def _squeezed(pieces: list[str]) -> str:
    return re.sub(r"\s+", " ", "".join(pieces))


def _fill_fields(root: Any) -> None:
    """Choices and ticks of old forms, which stand in the field and in no text."""
    for field in root.iter(W + "ffData"):
        run = next(field.iterancestors(W + "r"), None)
        choices = field.find(W + "ddList")
        tick = field.find(W + "checkBox")
        text = ""
        if choices is not None:
            entries = [entry.get(W + "val") or "" for entry in choices.iter(W + "listEntry")]
            told = value(choices, "result") or value(choices, "default") or "0"
            chosen = int(told) if told.isdecimal() and len(told) < 6 else 0
            text = entries[chosen] if chosen < len(entries) else ""
        elif tick is not None:
            state = tick.find(W + "checked")
            state = state if state is not None else tick.find(W + "default")
            text = "☒" if is_on(state) else "☐"
        if text and run is not None:
            etree.SubElement(run, W + "t").text = text


def take_alt_texts(root: Any, hidden: list[HiddenText]) -> None:
    """What is told of pictures and shapes, old ones (`alt`) too."""
    for told in dict.fromkeys(map(str, root.xpath("//@descr | //@title | //@alt"))):
        _keep(hidden, "alt-text", told)


def _is_struck(run: Any, style_id: str | None, styles: Styles) -> bool:
    own = run.find(W + "rPr")
    return any(is_on(styles.told(own, name, style_id)) for name in ("strike", "dstrike"))


def _mark_struck(texts: list[Any]) -> None:
    """Put `~~` around the text of neighbouring runs: what is crossed out must not read as valid."""
    filled = [t for t in texts if (t.text or "").strip()]
    texts.clear()
    if not filled:
        return
    first, last = filled[0], filled[-1]
    body = first.text.lstrip()
    first.text = f"{first.text[: len(first.text) - len(body)]}~~{body}"
    body = last.text.rstrip()
    last.text = f"{body}~~{last.text[len(body) :]}"


def _sign(run: Any, style_id: str | None, styles: Styles) -> None:
    """Put the signs of its look around the text of a run that stands out from its paragraph."""
    own = run.find(W + "rPr")
    look = look_of(
        bold=_stands_out("b", own, style_id, styles),
        italic=_stands_out("i", own, style_id, styles),
    )
    if look:
        for text in run.findall(W + "t"):
            text.text = signed(text.text or "", look)


def _raise(run: Any, styles: Styles) -> None:
    """Superscript numbers in letters that are."""
    own = run.find(W + "rPr")
    told = styles.told(own, "vertAlign", value(own, "rStyle"))
    if told is not None and told.get(W + "val") == "superscript":
        for text in run.findall(W + "t"):
            text.text = raised(text.text or "")


def _stands_out(name: str, own: Any | None, style_id: str | None, styles: Styles) -> bool:
    """Whether a toggle is on for a run, and not already for all of the paragraph by its style."""
    told = styles.told(own, name, value(own, "rStyle"))
    return is_on(told) and not is_on(styles.told(None, name, style_id))


def _quote(paragraph: Any) -> None:
    """Sign a paragraph of a quotation; within tables there is no block to be one."""
    inside = next(paragraph.iterancestors(W + "tbl"), None) is not None
    text = next((t for t in paragraph.iter(W + "t") if (t.text or "").strip()), None)
    if text is not None and not inside:
        text.text = QUOTED + (text.text or "").lstrip()


def plain_styles(root: Any | None) -> None:
    """Take the emphasis out of the styles: what stands out in a paragraph was signed; in place."""
    for properties in () if root is None else root.iter(W + "rPr"):
        _plain(properties, _STYLED)


def _plain(properties: Any | None, unwanted: Collection[str] = _EMPHASIS) -> None:
    """Without emphasis, so that docling joins neighbouring runs without inventing blanks."""
    if properties is None:
        return
    for child in list(properties):
        if child.tag in unwanted:
            properties.remove(child)


def _join_runs(paragraph: Any) -> None:
    """One run for neighbours of the same properties with nothing but text: each costs docling as
    much as a paragraph, and Word breaks one at every correction."""
    first: Any = None
    key = b""
    texts: list[str] = []

    def close() -> None:
        if len(texts) > 1:
            kept = first.find(W + "t")
            kept.text = "".join(texts)
            kept.set(_XML_SPACE, "preserve")
        texts.clear()

    for child in list(paragraph):
        if child.tag in _UNSEEN:
            continue
        told = _only_text(child) if child.tag == W + "r" else None
        if told is None:
            close()
            first = None
        elif first is not None and told[0] == key:
            texts.append(told[1])
            paragraph.remove(child)
        else:
            close()
            first, key = child, told[0]
            texts.append(told[1])
    close()


def _only_text(run: Any) -> tuple[bytes, str] | None:
    """The properties and the text of a run that holds one text and nothing else."""
    text = None
    properties = b""
    for child in run:
        if child.tag == W + "t" and text is None:
            text = child.text or ""
        elif child.tag == W + "rPr" and text is None:
            properties = etree.tostring(child, method="c14n") if len(child) else b""
        elif child.tag not in _UNSEEN:
            return None
    return None if text is None else (properties, text)


def _note_reference(run: Any, footnotes: Collection[str]) -> None:
    for reference in list(run.iter(W + "footnoteReference", W + "endnoteReference")):
        key = _note_key(reference)
        if key in footnotes:
            mark = etree.SubElement(run, W + "t")
            mark.text = f"[^{key}]"
            mark.set(_XML_SPACE, "preserve")
            _remove(reference)
            style = run.find(f"{W}rPr/{W}rStyle")
            if style is not None:
                _remove(style)


def _note_key(element: Any) -> str:
    prefix = "e" if element.tag in {W + "endnoteReference", W + "endnote"} else ""
    return prefix + (element.get(W + "id") or "")


def notes(root: Any | None, name: str) -> dict[str, str]:
    """Footnotes or endnotes (`name`) by the key that their references get."""
    if root is None:
        return {}
    return {_note_key(note): text_of(note) for note in root.iter(W + name) if text_of(note)}


def _append_notes(root: Any, footnotes: dict[str, str]) -> None:
    body = root.find(W + "body")
    if body is None:
        raise Refusal("corrupt-document", "the document has no body")
    for key, text in footnotes.items():
        paragraph = etree.Element(W + "p")
        run = etree.SubElement(paragraph, W + "r")
        etree.SubElement(run, W + "t").text = f"[^{key}]: {text}"
        sections = body.find(W + "sectPr")
        if sections is not None:
            sections.addprevious(paragraph)
        else:
            body.append(paragraph)
