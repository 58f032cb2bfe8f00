"""Where each piece of a page stood in it: XPaths of the page as it was parsed first."""

import re
from itertools import groupby
from sys import intern

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from contracts.artifacts import Place
from services.converter.parsing.article import Run, runs_of
from services.converter.parsing.marks import Marks

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]*")
# Docling drops what is blank to it; a mark must not keep that alive.
_SEEN = re.compile("[^\\s\u00ad\u200b-\u200d\u2060\ue000\ufeff]")
_ROWS = ["tr", "table"]


class Origins:
    """The place of every element; made right after parsing, before anything is changed."""

    def __init__(self, soup: BeautifulSoup) -> None:
        # The elements are held too, so that no later one gets the identity of one removed.
        self._steps: dict[int, tuple[Tag, str, int]] = {}
        stack: list[Tag] = [soup]
        while stack:
            parent = stack.pop()
            counts: dict[str, int] = {}
            for child in parent.contents:
                if isinstance(child, Tag):
                    counts[child.name] = counts.get(child.name, 0) + 1
                    # One string for all that are called so: a large page has a million elements.
                    step = intern(_step(child.name, counts[child.name]))
                    self._steps[id(child)] = (child, step, id(parent))
                    stack.append(child)

    def path(self, tag: Tag) -> str | None:
        """`/html[1]/body[1]/p[3]`; of an element made later, that of the nearest one around it."""
        around: Tag | None = tag
        while around is not None and id(around) not in self._steps:
            around = around.parent
        steps: list[str] = []
        key = id(around)
        while key in self._steps:
            _, step, key = self._steps[key]
            steps.append(step)
        return "/" + "/".join(reversed(steps)) if steps else None

    def mark(self, body: Tag, marks: Marks) -> None:
        """Put the mark of its place around the text of each block and each row of a table."""
        # By identity: equal elements are not the same one.
        runs_by_unit = groupby(runs_of(body, over_breaks=True), key=lambda run: id(_unit(run)))
        for _, group in runs_by_unit:
            runs = list(group)
            path = self.path(_unit(runs[0]))
            if path is None:
                continue
            mark = marks.mark(Place(path=path))
            pieces = [seen for run in runs if (seen := [n for n in run.nodes if _SEEN.search(n)])]
            for nodes in pieces:
                _surround(nodes, mark, Marks.END if nodes is pieces[-1] else "")


def _unit(run: Run) -> Tag:
    """The row of a table, or else the block of a text."""
    if run.block.name == "tr":
        return run.block
    around = run.block.find_parent(_ROWS)
    return around if isinstance(around, Tag) and around.name == "tr" else run.block


def _step(name: str, number: int) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return f"{name}[{number}]"
    return f"*[name()='{name}'][{number}]" if "'" not in name else f"*[{number}]"


def _surround(nodes: list[NavigableString], mark: str, end: str) -> None:
    """`mark` before the first letter, `end` after the last one."""
    first = str(nodes[0])
    lead = len(first) - len(first.lstrip())
    opened = NavigableString(first[:lead] + mark + first[lead:])
    nodes[0].replace_with(opened)
    closing = opened if len(nodes) == 1 else nodes[-1]
    last = str(closing)
    size = len(last.rstrip())
    closing.replace_with(NavigableString(last[:size] + end + last[size:]))
