"""Texts that marks in the content of a PDF put in the place of what is drawn.

`/ActualText` of marked content says what a drawn text is: that of a ligature, a hyphen at the end
of a line. Readers of text take it for the text of the page, people never see it. A whole sentence
there is for the scanner only, and what is drawn is read.
"""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from services.converter.parsing.pdf_beside import ODD, is_string, of

if TYPE_CHECKING:
    import pikepdf

_MARKED = re.compile(rb"\b(?:BDC|DP)\b")
_SAYS = re.compile(rb"ActualText|/Alt|/E\b|#")
"""`#` may write any letter of a name."""
_TOLD = ("/ActualText", "/Alt", "/E")
_LEAST_WORDS = 3
_MOST_BYTES, _MOST_IN_ALL = 16 << 20, 256 << 20
_MOST_OBJECTS = 100_000
_MOST_LETTERS = 1 << 20


@contextmanager
def as_drawn(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """`path`, or a copy in which no sentence stands for what is drawn; and what marks say.

    Of a file that qpdf cannot open nothing is known, and it stays as it is.
    """
    import pikepdf

    with TemporaryDirectory(prefix="citelog-pdf-") as folder:
        copy = Path(folder) / "drawn.pdf"
        told: list[str] = []
        changed = False
        try:
            with pikepdf.open(path, suppress_warnings=True) as document:
                marks = _Marks(document)
                marks.read()
                told = marks.told
                if marks.changed:
                    document.save(copy)
                    changed = True
        except (pikepdf.PdfError, pikepdf.PasswordError, *ODD):
            changed = False
        yield (copy if changed else path), told


class _Marks:
    def __init__(self, document: "pikepdf.Pdf") -> None:
        self._document = document
        self._left, self._letters = _MOST_IN_ALL, _MOST_LETTERS
        self.told: list[str] = []
        self.changed = False

    def read(self) -> None:
        """Go through the contents of pages and of the forms that they draw."""
        import pikepdf

        for page in self._document.pages:
            try:
                self._page(page)
            except (pikepdf.PdfError, zlib.error, *ODD):
                # An odd page costs itself only.
                continue
        for number, one in enumerate(self._document.objects):
            if number > _MOST_OBJECTS or self._left <= 0:
                return
            if isinstance(one, pikepdf.Stream) and one.get("/Subtype") == "/Form":
                try:
                    self._form(one)
                except (pikepdf.PdfError, zlib.error, *ODD):
                    continue

    def _page(self, page: "pikepdf.Page") -> None:
        import pikepdf

        contents = page.obj.get("/Contents")
        parts = list(contents.as_list()) if isinstance(contents, pikepdf.Array) else [contents]
        streams = [part for part in parts if isinstance(part, pikepdf.Stream)]
        resources = page.obj.get("/Resources")
        if self._speaks(streams, resources):
            written = self._without(page, resources)
            if written is not None:
                page.obj.Contents = self._document.make_stream(written)

    def _form(self, form: "pikepdf.Stream") -> None:
        resources = form.get("/Resources")
        if self._speaks([form], resources):
            written = self._without(form, resources)
            if written is not None:
                form.write(written)

    def _speaks(self, streams: "list[pikepdf.Stream]", resources: Any) -> bool:
        data = b"\n".join(map(_unpacked, streams))
        self._left -= len(data)
        if self._left <= 0 or not _MARKED.search(data):
            return False
        named = of(of(resources, "/Properties"), None)
        groups = [] if named is None else [of(group, None) for _, group in named.items()]
        by_name = any(key in group for group in groups if group is not None for key in _TOLD)
        return by_name or bool(_SAYS.search(data))

    def _without(self, holder: Any, resources: Any) -> bytes | None:
        """The content without marks that hold sentences, None if there are none."""
        import pikepdf

        named = of(resources, "/Properties")
        pieces: list[str] = []
        taken = False
        content = list(pikepdf.parse_content_stream(holder))
        for one in content:
            operands: Any = one.operands
            if str(one.operator) not in {"BDC", "DP"} or len(operands) < 2:
                continue
            own = isinstance(operands[1], pikepdf.Dictionary)
            properties = operands[1] if own else of(named, str(operands[1]))
            for key in _TOLD:
                text = of(properties, key)
                if text is None or not is_string(text):
                    continue
                pieces.append(re.sub(r"[\s\0]+", " ", str(text)))
                if own and key == "/ActualText" and len(str(text).split()) >= _LEAST_WORDS:
                    del properties[key]
                    taken = True
        self._tell(pieces)
        self.changed = self.changed or taken
        return pikepdf.unparse_content_stream(content) if taken else None

    def _tell(self, pieces: list[str]) -> None:
        """Of single letters nobody says where a word ends but their blanks."""
        whole = sum(map(len, pieces)) > 2 * len(pieces)
        text = re.sub(r" +", " ", (" " if whole else "").join(pieces)).strip()[: self._letters]
        self._letters -= len(text)
        if len(text.split()) >= _LEAST_WORDS:
            self.told.append(text)


def _unpacked(stream: "pikepdf.Stream") -> bytes:
    """Its content as far as it is looked at: a bomb costs no more."""
    if str(stream.get("/Filter")) == "/FlateDecode" and stream.get("/DecodeParms") is None:
        return zlib.decompressobj().decompress(stream.read_raw_bytes(), _MOST_BYTES)
    return stream.read_bytes() if int(stream.get("/Length", 0)) <= _MOST_BYTES // 16 else b""
