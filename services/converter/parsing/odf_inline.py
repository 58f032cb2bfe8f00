"""Text of OpenDocument paragraphs: what is seen, and how it stands out."""

import re
from typing import Any, NamedTuple

from contracts.events import HiddenKind
from services.converter.parsing.hidden import Unseen, is_sentence
from services.converter.parsing.literal import raised
from services.converter.parsing.looks import STRUCK, Links, Runs, plain_text
from services.converter.parsing.odf import (
    BOXES,
    DRAW,
    OFFICE,
    TEXT,
    XLINK,
    Styles,
    is_hidden_paragraph,
    plain,
)
from services.converter.parsing.odf_grounds import Grounds, is_same
from services.converter.parsing.odf_objects import Objects


class _Style(NamedTuple):
    """What holds for text: why it is not seen, if so; its look; its colour and the one behind it,
    None if nothing is told of them."""

    kind: HiddenKind | None
    look: int
    front: str | None
    behind: str | None
    paragraph: Any


def squeezed(text: str) -> str:
    """With single blanks, line ends kept."""
    return re.sub(r"[ \t]+", " ", text).strip()


class Inline:
    """Text of paragraphs: hidden runs and remarks go away, notes leave their mark."""

    def __init__(self, styles: Styles, grounds: Grounds, hidden: Unseen, objects: Objects) -> None:
        self._styles, self._hidden, self._objects = styles, hidden, objects
        self._grounds = grounds
        self.notes: list[tuple[str, Runs]] = []
        """Marks and texts of footnotes and endnotes."""
        self.links = Links()

    def text(self, paragraph: Any) -> str:
        """What a reader sees of a paragraph."""
        return squeezed(plain_text(self.runs(paragraph)))

    def runs(self, paragraph: Any) -> Runs:
        """The same, with the looks that stand out from the named style of the paragraph."""
        name = paragraph.get(TEXT + "style-name")
        own = self._styles.hides("paragraph", name)
        if is_hidden_paragraph(paragraph):
            own = "invisible-style"
        runs: Runs = []
        base = self._styles.look("paragraph", self._styles.named(name), 0) & ~STRUCK
        look = self._styles.look("paragraph", name, 0)
        front, behind = self._styles.colours("paragraph", name)
        if front is None:
            front = self._grounds.front(paragraph)
        self._collect(paragraph, _Style(own, look, front, behind, paragraph), runs)
        return [(text, look & ~base) for text, look in runs]

    def _collect(self, element: Any, style: "_Style", runs: Runs) -> None:
        self._put(element.text, style, runs)
        for child in element:
            if isinstance(child.tag, str):
                self._child(child, style, runs)
            self._put(child.tail, style, runs)

    def _child(self, child: Any, style: "_Style", runs: Runs) -> None:
        match child.tag.rpartition("}")[2]:
            case "s" | "tab" | "line-break" as name:
                runs.append(("\n" if name == "line-break" else " ", style.look))
            case "note":
                runs.append((self._note(child), 0))
            case "ruby-text" | "annotation-end" | "tracked-changes" | "hidden-paragraph":
                pass
            case "a" if not self._unseen(style):
                self._say(child.get(f"{OFFICE}title"))
                runs.append(Links.opened)
                self._collect(child, style, runs)
                runs.append(self.links.closed(child.get(XLINK + "href") or ""))
            case "frame" if not self._unseen(style):
                runs += [(self._objects.formula(one), 0) for one in child.iter(DRAW + "object")]
            case "span":
                runs += self._span(child, style)
            case _ if child.tag not in BOXES and not self._kept_back(child):
                self._collect(child, style, runs)

    def _kept_back(self, child: Any) -> bool:
        """Whether something in a line is for the scanner only."""
        match child.tag.rpartition("}")[2]:
            case "annotation":
                self._hidden.add("comment", plain(child))
            case "hidden-text":
                told = child.get(f"{TEXT}string-value") or ""
                self._hidden.add("invisible-style", plain(child) or told)
            case "bookmark" | "bookmark-start":
                self._say(child.get(f"{TEXT}name"))
            case _:
                return False
        return True

    def _say(self, text: str | None) -> None:
        """A name, or what shows when the pointer rests on a link, if it is a sentence."""
        if text and is_sentence(text):
            self._hidden.add("attribute", text)

    def _span(self, span: Any, style: "_Style") -> Runs:
        runs: Runs = []
        self._collect(span, self._inner(span, style), runs)
        if self._styles.raises(span.get(TEXT + "style-name")):
            return [(raised(text), look) for text, look in runs]
        return runs

    def _inner(self, span: Any, style: "_Style") -> "_Style":
        name = span.get(TEXT + "style-name")
        own = self._styles.hides("text", name)
        look = self._styles.look("text", name, style.look)
        front, behind = self._styles.colours("text", name)
        return style._replace(
            kind=style.kind or own,
            look=look,
            front=style.front if front is None else front,
            behind=style.behind if behind is None else behind,
        )

    def _unseen(self, style: "_Style") -> HiddenKind | None:
        """Why text cannot be read; what is behind it is looked for only if it has a colour."""
        if style.kind or not style.front:
            return style.kind
        behind = self._grounds.of(style.paragraph) if style.behind is None else style.behind
        return "background-colour" if is_same(style.front, behind) else None

    def _put(self, text: str | None, style: "_Style", runs: Runs) -> None:
        kind = self._unseen(style) if text and text.strip() else style.kind
        if text and kind:
            self._hidden.add(kind, text)
        elif text:
            # Line ends in the file are blanks of the text.
            runs.append((re.sub(r"[\n\r\t]+", " ", text), style.look))

    def _note(self, note: Any) -> str:
        body = note.find(TEXT + "note-body")
        runs: Runs = []
        for paragraph in () if body is None else body.iter(TEXT + "p"):
            runs += [(" ", 0), *self.runs(paragraph)]
        if not plain_text(runs).strip():
            return ""
        prefix = "e" if note.get(TEXT + "note-class") == "endnote" else ""
        key = f"{prefix}{len(self.notes) + 1}"
        self.notes.append((key, runs))
        return f"\ufffe{key}\uffff"


NOTE_MARK = re.compile("\ufffe(e?\\d+)\uffff")
"""A footnote's mark in text that is not yet literal; XML cannot hold these characters."""
