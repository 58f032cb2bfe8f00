"""Damage done to valid files, and what has to hold whatever comes out of a parser."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kernel.errors import Refusal
from services.converter.parsing import parse
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions(
    max_unpacked_bytes=50_000_000, max_output_bytes=5_000_000, max_pages=50, max_depth=60
)
_ODD = [
    b"", b"-1", b"0", b"99999999999999999999", b"nan", b"1e400", b"\xff\xfe", b"<", b">", b"&",
    b'"', b"\\", b"{", b"}", b"[", b"]", b"|", b"\n", b"\0", b"%9", b"A1:ZZZ9999999", b"../../x",
    b"&#xFDD0;", "ж".encode(), b"<!--", b"]]>", b"#" * 300, b"\\u-1?", b"\\'", b"sep=\x01\n",
]  # fmt: skip
_PARTS = r".*\.(?:xml|rels|xhtml|opf|ncx)"
_UNFIT = frozenset(b'<>&"\0\xff\xfe')
_ELEMENTS = re.compile(
    rb"<[\w:.-]{1,40}(?:\s[^<>]{0,400})?/>|<([\w:.-]{1,40})(?:\s[^<>]{0,400})?>[^<>]{0,400}</\1>"
)
_VALUES = re.compile(rb'="[^"]{0,60}"|>[^<>]{1,60}<')

BOUNDED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SLOW = settings(BOUNDED, max_examples=12)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` after one to four changes: pieces cut, doubled, turned or put in."""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["cut", "double", "insert", "flip"]))
        at = draw(st.integers(0, max(0, len(data) - 1)))
        size = draw(st.integers(1, 40))
        if kind == "cut":
            data = data[:at] + data[at + size :]
        elif kind == "double":
            data = data[: at + size] + data[at:]
        elif kind == "flip":
            data = data[:at] + bytes(b ^ 0x20 for b in data[at : at + 1]) + data[at + 1 :]
        else:
            odd = draw(st.one_of(st.sampled_from(_ODD), st.binary(max_size=8)))
            data = data[:at] + odd + data[at:]
    return data


@st.composite
def rewritten(draw: st.DrawFn, data: bytes) -> bytes:
    """XML that stays well-formed: values replaced, whole elements cut or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        pattern = draw(st.sampled_from([_VALUES, _ELEMENTS]))
        found = list(pattern.finditer(data))
        if not found:
            continue
        match = found[draw(st.integers(0, len(found) - 1))]
        start, end = match.span()
        if pattern is _VALUES:
            edges = 2 if match[0].startswith(b"=") else 1
            odd = draw(st.sampled_from([one for one in _ODD if not set(one) & _UNFIT]))
            data = data[: start + edges] + odd + data[end - 1 :]
        else:
            data = data[:start] + match[0] * draw(st.sampled_from([0, 2, 5])) + data[end:]
    return data


@st.composite
def damaged_zip(
    draw: st.DrawFn, data: bytes, names: str = r".*\.(?:xml|rels|xhtml|opf|ncx)"
) -> bytes:
    """A container with one damaged entry, now and then the container itself."""
    if draw(st.integers(0, 9)) == 0:
        return draw(damaged(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    wanted = sorted(name for name in entries if re.fullmatch(names, name))
    name = draw(st.sampled_from(wanted))
    way = rewritten if draw(st.integers(0, 4)) else damaged
    entries[name] = draw(way(entries[name]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    return buffer.getvalue()


def check(path: Path, data: bytes, media_type: str) -> None:
    """Only a refusal may come out, the same one or the same parse twice, with spans in order."""
    path.write_bytes(data)

    def outcome() -> object:
        try:
            return parse(path, media_type, OPTIONS)
        except Refusal as refusal:
            assert re.fullmatch(r"[a-z0-9-]+", refusal.code)
            return (refusal.code, refusal.reason)

    first = outcome()
    assert first == outcome()
    if isinstance(first, tuple):
        return
    document = first.document  # type: ignore[attr-defined]  # a Parse
    body = document.markdown.encode()
    assert body.strip() and b"\0" not in body
    at = 0
    for span in document.spans:
        assert at <= span.byte_start < span.byte_end <= len(body)
        assert body[span.byte_start : span.byte_end].decode().strip()
        at = span.byte_end
    assert document.to_bytes()


def made(write: Callable[[io.BytesIO], object]) -> bytes:
    """What `write` put into a file."""
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()
