"""Broken and hostile files: each must be parsed or refused with a code, at a bounded cost."""

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from eval.parsing.made.model import report
from eval.parsing.made.office import write_docx, write_xlsx
from eval.parsing.made.pdf import write_pdf
from eval.parsing.made.texts import WORDS

_BOMB_BYTES = 300_000_000
_LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(10)
)


def write_hostile(folder: Path) -> list[Path]:
    """One file of each kind, the same at every call."""
    docx, pdf, xlsx = (folder / f"good.{kind}" for kind in ("docx", "pdf", "xlsx"))
    write_docx(report(WORDS[0]), docx)
    write_pdf(report(WORDS[0]), pdf)
    write_xlsx(WORDS[0], xlsx)
    word = "word/document.xml"
    external = '<!ENTITY x SYSTEM "file:///etc/passwd">'
    files: dict[str, Callable[[], bytes]] = {
        "laughs.docx": lambda: _with_entity(docx, _LAUGHS, "&l9;"),
        "external.docx": lambda: _with_entity(docx, external, "&x;"),
        "bomb.docx": lambda: _replaced(docx, word, bytes(_BOMB_BYTES)),
        "bomb.xlsx": lambda: _replaced(xlsx, "xl/worksheets/sheet1.xml", b" " * _BOMB_BYTES),
        "truncated.docx": lambda: docx.read_bytes()[: docx.stat().st_size // 2],
        "truncated.pdf": lambda: pdf.read_bytes()[: pdf.stat().st_size // 2],
        **{f"flipped-{n}.docx": partial(_flipped, docx, n) for n in range(3)},
        **{f"flipped-{n}.pdf": partial(_flipped, pdf, n) for n in range(3)},
        "empty.pdf": lambda: b"%PDF-1.7\n%%EOF\n",
        "loop.pdf": _loop,
        "deep.json": lambda: b"[" * 200_000,
        "deep.html": lambda: b"<html><body>" + b"<div>" * 100_000 + b"x",
        "laughs.html": f"<!DOCTYPE html [{_LAUGHS}]><html>&l9;</html>".encode,
        "one-line.csv": lambda: b"a,b\n" + b'"' + b"x" * 20_000_000,
        "wide.csv": lambda: b",".join(b"%d" % n for n in range(200_000)) + b"\n",
        "huge.png": lambda: _png(40_000, 40_000),
        "nul.txt": lambda: bytes(100_000),
        "surrogates.txt": lambda: b"\xed\xa0\x80 text \xff\xfe" * 500,
        "mail-in-mail.eml": lambda: b"Subject: x\nContent-Type: message/rfc822\n\n" * 500,
        "not-a.docx": lambda: _zip({"word/document.xml": b"<not closed"}),
    }
    found = []
    for name, make in files.items():
        path = folder / name
        path.write_bytes(make())
        found.append(path)
    return found


def _with_entity(docx: Path, declared: str, used: str) -> bytes:
    with zipfile.ZipFile(docx) as file:
        text = file.read("word/document.xml").decode()
    head, _, rest = text.partition("?>")
    body = rest.replace("<w:t>", f"<w:t>{used}", 1)
    return _replaced(docx, "word/document.xml", f"{head}?><!DOCTYPE d [{declared}]>{body}".encode())


def _replaced(source: Path, entry: str, data: bytes) -> bytes:
    with zipfile.ZipFile(source) as file:
        return _zip({n: data if n == entry else file.read(n) for n in file.namelist()})


def _zip(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _flipped(path: Path, seed: int) -> bytes:
    """Twenty bits turned over, past the signature."""
    data, dice = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(20):
        data[dice.randrange(16, len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def _loop() -> bytes:
    """A tree of pages that is its own child and says it has a million."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000>>endobj\n"
        b"trailer<</Root 1 0 R/Size 3>>\n%%EOF\n"
    )


def _png(width: int, height: int) -> bytes:
    """Black, one bit a pixel: 200 MB of pixels in some hundred kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(9)
    line = bytes(1 + width // 8)
    data = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
