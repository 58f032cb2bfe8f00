"""The lines of a document as one looks at them: what stands above, what follows. Pure."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from services.converter.form import is_heading
from services.converter.headings import legal_mark
from services.converter.laws.items import LEAVES, MOST_LINES
from services.converter.laws.quoted import quoted_lines
from services.converter.lines import Line

_WIDEST = 120
"""Characters of a line in text that is cut into lines."""
_LETTER = re.compile(r"[^\W\d_]")
_GOES_ON = re.compile(
    r"(?:^|\s)(?:of|in|with|to|under|and|or|by|from|the|see|gemäß|nach|des|der|dem|den|in|im|und|oder|"
    r"vgl\.|von|mit|zu|aus|в|във|на|от|по|с|и|или|у|од|из|са|со|според|съгласно|согласно|у|u|iz|s|sa|"
    r"po|na|od|i|ili|iz|z|v|za|ter|ali|in|prema|сходно|к|со)$",
    re.IGNORECASE,
)


def goes_on(text: str) -> bool:
    """Whether a text ends with a word that more must follow: `pursuant to`."""
    return _GOES_ON.search(text) is not None


class Page:
    """A text in canonical form.

    `indented`: an indent means nothing, as in plain text; `quoted`: lines of another law;
    `dense`: a line is a paragraph, with hardly a blank one between.
    """

    def __init__(self, lines: Sequence[Line], *, indented: bool) -> None:
        self.lines = lines
        self.indented = indented
        self._wide = self._width()
        blank = sum(not line.text for line in lines)
        self.dense = blank * 8 < len(lines) and not self._wide
        self.quoted = quoted_lines(["" if line.code else line.text for line in lines])

    def text(self, number: int) -> str:
        """A line's text; empty for what does not exist."""
        return self.lines[number].text.strip() if 0 <= number < len(self.lines) else ""

    def next_text(self, number: int, step: int) -> int:
        """The next line in that direction that is not blank; beyond an end if there is none."""
        number += step
        while 0 <= number < len(self.lines) and not self.text(number):
            number += step
        return number

    def block(self, first: int, starts: Collection[int]) -> list[int]:
        """The lines of text from `first` up to a blank one."""
        block = []
        for number in range(first, len(self.lines)):
            line = self.lines[number]
            if not line.text.strip() or line.code or number in starts or is_heading(line):
                break
            block.append(number)
        return block

    def joined(self, block: list[int]) -> str:
        return " ".join(self.text(number) for number in block)

    def continuation(self, number: int) -> list[int]:
        """The further lines of a title that did not fit on its line."""
        end = number
        while end - number < MOST_LINES and self.wraps(end) and not self.lines[end + 1].code:
            end += 1
        if end > number and not self.text(end + 1):
            return list(range(number + 1, end + 1))
        # `Chapter 7. Offences against` `property`, and `Article 7.1` right below.
        below = self.text(number + 1)
        goes_on = below[:1].islower() and legal_mark(self.text(number + 2)) is not None
        return [number + 1] if goes_on and below[-1] not in ".,;:" else []

    def opens(self, number: int) -> bool:
        """Whether the line before ends something."""
        above = self.text(number - 1)
        if not above or is_heading(self.lines[number - 1]):
            return True
        if above[-1] in ".;:!?)]»”“\"'…*_" or legal_mark(above):
            return not goes_on(above)
        if self._titles_part(number - 1):
            return True
        if self._long or not _LETTER.search(above):
            # A paragraph of its own; the last figure of a table.
            return above[-1] != "," and not goes_on(above)
        short = len(above) < min(60, 0.8 * (self._wide or 80)) or above.isupper()
        return short and above[0].isupper() and above[-1] != "," and not goes_on(above)

    def _titles_part(self, number: int) -> bool:
        """Whether a line is the title, or the end of the title, of a chapter above it."""
        for above in range(number - 1, number - MOST_LINES, -1):
            mark = legal_mark(self.text(above)) if self.text(above) else None
            if mark is None:
                continue
            whole = self.joined(list(range(above, number + 1)))
            return mark.value > 0 and mark.unit not in LEAVES and whole[-1] not in ".,;:"
        return False

    def wraps(self, number: int) -> bool:
        """Whether a line was cut since the next word did not fit."""
        word = self.text(number + 1).split(" ", 1)[0]
        return bool(word) and len(self.lines[number].text) + 1 + len(word) > self._wide > 0

    def _width(self) -> int:
        """Where lines are cut, if this text is cut into lines; 0 if it is not."""
        sizes = sorted(len(line.text) for line in self.lines if line.text and not line.code)
        wide = sizes[len(sizes) * 19 // 20] if sizes else 0
        # A line that is not cut is a paragraph: what follows begins another.
        self._long = wide > _WIDEST
        if self._long:
            return 0
        pairs = cut = 0
        for above, below in pairwise(self.lines):
            if above.text and below.text:
                pairs += 1
                cut += len(above.text) > 0.7 * wide and below.text.lstrip()[:1].islower()
        return wide if cut * 8 >= pairs else 0
