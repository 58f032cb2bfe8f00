"""Files that were put into an office document: each will be a document of its own."""

import io
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from kernel.media import DOCX, HTML, OCTETS, OLE, OLE_MAGIC, PDF, PPTX, SNIFF_BYTES, XLSX, sniff
from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.literal import span
from services.converter.parsing.properties import line
from services.converter.parsing.result import File
from services.converter.parsing.writer import Writer

_FOLDER = re.compile(r"(?:word|xl|ppt)/embeddings/([^/]+)")
_STREAMS = ("\x01Ole10Native", "CONTENTS", "Package")
_MOST_FILES = 100
_ENDINGS = {PDF: ".pdf", DOCX: ".docx", XLSX: ".xlsx", PPTX: ".pptx", HTML: ".html"}
_DAMAGE = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError)


def embedded_files(archive: Archive) -> list[File]:
    """The embedded files of a container, in the order of their names; damaged ones are noted."""
    found: list[File] = []
    for name in sorted(set(archive.names)):
        match = _FOLDER.fullmatch(name)
        if match and len(found) < _MOST_FILES:
            try:
                file = unwrapped(match[1], archive.read(name))
            except Damaged:
                archive.miss(name)
                continue
            found += [file] if file else []
    return found


def list_files(writer: Writer, files: Sequence[File]) -> None:
    """Names of the embedded files, in a document that shows nothing else."""
    if writer.empty and files:
        writer.block("\n".join(f"- {span(file.name)}" for file in files))


def unwrapped(name: str, data: bytes) -> File | None:
    """The file itself, taken out of its OLE wrapping; None if there is nothing in it."""
    if not data.startswith(OLE_MAGIC):
        return File(_base(name), data) if data else None
    kind = sniff(data[:SNIFF_BYTES], "")
    if kind not in {OLE, OCTETS}:
        return File(_base(name), data)
    return _from_ole(name, data)


def _from_ole(name: str, data: bytes) -> File | None:
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(data)) as container:
            for stream in _STREAMS:
                if container.exists(stream):
                    content = container.openstream(stream).read()
                    native = stream == _STREAMS[0]
                    return _native(content) if native else File(_typed(name, content), content)
    except _DAMAGE:
        return None
    return None


def _typed(name: str, content: bytes) -> str:
    """`oleObject1.pdf` for the `oleObject1.bin` that was one."""
    ending = _ENDINGS.get(sniff(content[:SNIFF_BYTES], ""), "")
    return _base(str(PurePosixPath(name).with_suffix(ending)) if ending else name)


def _native(stream: bytes) -> File | None:
    """`Ole10Native`: size, flags, label, path, …, then size and bytes of the file (MS-OLEDS)."""
    parts = stream[6:].split(b"\0", 2)
    if len(parts) < 3:
        return None
    label = parts[0].decode("cp1252", "replace")
    at = 6 + len(parts[0]) + len(parts[1]) + 2 + 4
    length = int.from_bytes(stream[at : at + 4], "little")
    at += 4 + length
    size = int.from_bytes(stream[at : at + 4], "little")
    content = stream[at + 4 : at + 4 + size]
    return File(_base(label), content) if content else None


def _base(name: str) -> str:
    """A name without folders, of either kind of system."""
    return line(PurePosixPath(name.replace("\\", "/")).name)[-255:] or "file"
