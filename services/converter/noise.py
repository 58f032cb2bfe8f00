"""What says nothing: page furniture, cookie notices, menus, lists of contents. Pure."""

import re
from collections.abc import Iterator, Sequence

from kernel.media import HTML
from services.converter.form import is_heading
from services.converter.lines import Line
from services.converter.pages import page_furniture

_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,6})$")
_LEADER = " \t.·_…"
_CONTENTS = re.compile(
    r"(?:#{1,6} )?\W*(?:table of contents|contents|inhalt|inhaltsverzeichnis|inhaltsübersicht|"
    r"содержание|оглавление|съдържание|садржај|sadržaj|содржина|kazalo|kazalo vsebine|vsebina)\W*",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"cookie|\bкуки\b|колачић|колачињ|kolačić|бисквитк|piškot", re.IGNORECASE)
_CONSENT = re.compile(
    r"accept|agree|consent|settings|preferences|zustimm|akzeptier|einverstanden|einstellung|verwend|"
    r"nutz|принять|принима|соглас|використ|использу|приемам|съглас|използва|прихват|прихваћ|"
    r"прифат|прифаќ|користи|prihvat|prihvać|korist|slaž|sprejm|strinja|uporablja",
    re.IGNORECASE,
)
_LINK = re.compile(r"!?\[[^\]]{0,60}\]\([^)\s]*(?: \"[^\"]*\")?\)")
_LINK_ITEM = re.compile(rf"\s*(?:[-*+]|\d{{1,3}}[.)]) {_LINK.pattern}\s*")
_BETWEEN_LINKS = re.compile(r"[\s|·•›»/>,\\]*")
_SKIP = re.compile(
    r"\W*(?:\[)?(?:skip to (?:main )?(?:content|navigation)|jump to (?:content|navigation)|"
    r"(?:direkt )?zum inhalt(?: springen)?|перейти к (?:основному )?содерж(?:анию|имому)|"
    r"към (?:основното )?съдържание(?:то)?|(?:пређи|прескочи|прескочите) на садржај|"
    r"(?:pređi|preskoči|preskočite|prijeđi) na (?:glavni )?sadržaj|"
    r"(?:прескокни|оди|премини) на содржина(?:та)?|(?:skoči|preskoči|pojdi) na (?:glavno )?vsebino)"
    r"(?:\]\([^)]*\))?\W*",
    re.IGNORECASE,
)
_EDIT = re.compile(
    r"\s*\\?\[\s*(?:edit|bearbeiten|править|редактиране|уреди|uredi|urejanje|quelltext bearbeiten|"
    r"edit source|править код|редактиране на кода|уреди извор|uredi kod|uredi kôd|\s|\|)+\\?\]$",
    re.IGNORECASE,
)
_LEAST = 3
_LONGEST_NOTICE = 700


def without_noise(lines: Sequence[Line], media_type: str) -> list[Line]:
    """`lines` without repeated furniture; blocks are told by blank lines, code is kept."""
    blocks = _blocks(lines)
    texts = ["\n".join(line.text for line in block) for block in blocks]
    code = {n for n, block in enumerate(blocks) if block[0].code}
    dropped = page_furniture(texts) | _contents(texts)
    if media_type == HTML:
        dropped |= _notices(texts) | _menus(texts)
        dropped |= {n for n, text in enumerate(texts) if len(text) < 200 and _SKIP.fullmatch(text)}
        blocks = [[_without_edit(line) for line in block] for block in blocks]
    kept = (block for n, block in enumerate(blocks) if n in code or n not in dropped)
    return [line for block in kept for line in (Line(""), *block)]


def _without_edit(line: Line) -> Line:
    """A wiki's heading without `[edit]`."""
    match = _EDIT.search(line.text) if is_heading(line) and line.text.endswith("]") else None
    return line.cut(0, match.start()) if match else line


def _blocks(lines: Sequence[Line]) -> list[list[Line]]:
    """Paragraphs, lists and tables; a fenced block is one, blank lines and all."""
    blocks: list[list[Line]] = []
    for line in [Line(""), *lines]:
        if line.text or line.code:
            blocks[-1].append(line)
        elif not blocks or blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _contents(blocks: Sequence[str]) -> set[int]:
    """Lists of contents, and the heading over them: entries whose page numbers do not fall.

    Without such a heading their entries must come again in the text: prices have leaders, too.
    """
    lists = {n: entries for n, block in enumerate(blocks) if (entries := _entries(block))}
    heads = {n for n, block in enumerate(blocks) if _CONTENTS.fullmatch(block)}
    again = {_letters(line) for block in blocks if lists for line in block.split("\n")}
    found: set[int] = set()
    for run in _runs(sorted(lists)):
        entries = [entry for n in run for entry in lists[n]]
        pages = [int(page) for _, _, page in entries if page.isdigit()]
        leading = sum(not leader.isspace() for _, leader, _ in entries) * 2 >= len(entries)
        headed = run[0] - 1 in heads
        again_there = sum(_letters(text) in again for text, _, _ in entries) * 2 >= len(entries)
        told = headed or (leading and again_there)
        if len(entries) >= _LEAST and pages == sorted(pages) and pages and told:
            found |= {*run, run[0] - 1} if headed else set(run)
    return found


def _entries(block: str) -> list[tuple[str, str, str]]:
    """Text, leader and page of each line; none if a line is no entry."""
    if block.startswith(("|", "`", "~", "#", ">")):
        return []
    entries: list[tuple[str, str, str]] = []
    for line in (raw.rstrip("\\ ") for raw in _lines(block)):
        page = _PAGE.search(line[-6:])
        rest = line[: -len(page[0])] if page else ""
        text = rest.rstrip(_LEADER)
        leader = rest[len(text) :]
        if page is None or not text.strip() or not leader or not _leads(leader):
            return []
        entries.append((text, leader, page[0]))
    return entries


def _lines(block: str) -> Iterator[str]:
    """The lines of a block one by one: most are looked at for the first one's sake."""
    at = 0
    while (end := block.find("\n", at)) >= 0:
        yield block[at:end]
        at = end + 1
    yield block[at:]


def _leads(leader: str) -> bool:
    return leader.isspace() or len(leader.replace(" ", "")) >= 4 or leader.count("…") >= 2


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _notices(blocks: Sequence[str]) -> set[int]:
    """Cookie notices of a web page; a text about cookies has more of them, and keeps them."""
    found = {
        n
        for n, block in enumerate(blocks)
        if len(block) < _LONGEST_NOTICE and _COOKIE.search(block) and _CONSENT.search(block)
    }
    size = sum(len(blocks[n]) for n in found)
    return found if len(found) <= 3 and size * 4 < sum(map(len, blocks)) else set()


def _menus(blocks: Sequence[str]) -> set[int]:
    """Nothing but links, before the first heading or after the last paragraph."""
    prose = [n for n, b in enumerate(blocks) if len(b) > 80 and not _is_menu(b)]
    heading = next((n for n, b in enumerate(blocks) if b.startswith("#")), len(blocks))
    last = prose[-1] if prose else len(blocks)
    return {n for n, b in enumerate(blocks) if (n < heading or n > last) and _is_menu(b)}


def _is_menu(block: str) -> bool:
    """A list of five links and more, or a line of four."""
    lines = block.split("\n")
    if len(lines) >= 5 and all(_LINK_ITEM.fullmatch(line) for line in lines):
        return True
    links = _LINK.findall(block)
    return len(links) >= 4 and _BETWEEN_LINKS.fullmatch(_LINK.sub("", block)) is not None
