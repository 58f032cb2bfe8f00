"""The language of a code block of a page, which becomes the info string of its fence.

Between the page and the Markdown it is told by noncharacters before the code, which docling hands
on: the guard, the letters of the name as one number in digits of `marks.py`, the guard again.
"""

import re

from bs4.element import Tag

from services.converter.parsing.marks import NONCHARACTERS, digits, number_of

GUARD = "\ufde3"
"""Before every code: the blanks that it starts with are not at its edge."""

_NAME = re.compile(r"[A-Za-z0-9+#.-]{1,20}")
_OWN = re.compile(r"(?:^|\s)(?:lang(?:uage)?-|brush:\s*)([^\s;]+)")
_AROUND = re.compile(r"(?:^|\s)(?:language-|highlight-source-|highlight-(?=\S+ notranslate))(\S+)")
"""Not `lang-en`, the language of a reader. Sphinx writes `highlight-c notranslate`."""
_NO_NAMES = frozenset({"none", "auto", "default", "plaintext"})
_LEVELS = 3
_MOST_BESIDE = 6
_TOLD = re.compile(
    rf"^([ \t]*`{{3,}})\n([{NONCHARACTERS}]*?){GUARD}([\ufdd0-\ufddf]{{1,40}}){GUARD}", re.MULTILINE
)


def language_of(block: Tag) -> str:
    """What `class` of a `<pre>`, of the code in it, or of what is only around it says; or empty.

    `language-c`, `lang-c`, `brush: c`, `highlight-source-c`; what is no plain name is dropped.
    """
    for tag in (block, *block.find_all("code", limit=1)):
        name = _name(tag, _OWN) or _name(tag, _AROUND)
        if name:
            return name
    inner = block
    for _ in range(_LEVELS):
        around = inner.parent
        if around is None or len(around.contents) > _MOST_BESIDE:
            break
        if any(one is not inner and one.get_text(strip=True) for one in around.contents):
            break
        name = _name(around, _AROUND)
        if name:
            return name
        inner = around
    return ""


def _name(tag: Tag, told: re.Pattern[str]) -> str:
    classes: str | list[str] = tag.get("class") or ""
    found = told.search(classes if isinstance(classes, str) else " ".join(classes))
    name = found[1] if found else ""
    return name if _NAME.fullmatch(name) and name.lower() not in _NO_NAMES else ""


def guarded(code: str, language: str) -> str:
    """The text of a code block with its language before it."""
    if not language:
        return GUARD + code
    return f"{GUARD}{digits(int.from_bytes(language.encode('ascii')))}{GUARD}{code}"


def fences_named(markdown: str) -> str:
    """The Markdown of such a page with the languages behind its fences."""

    def named(match: re.Match[str]) -> str:
        number = number_of(match[3])
        language = number.to_bytes(20).lstrip(b"\0").decode("ascii")
        return f"{match[1]}{language}\n{match[2]}{GUARD}"

    return _TOLD.sub(named, markdown)
