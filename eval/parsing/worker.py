"""One converter as a process: `python worker.py ENGINE`, a JSON request and answer a line.

Imports only the standard library, so that the peers' interpreter can run it as a file. A request is
`{"path", "media_type", "children"}`, an answer `{"text", "pages", …}` or `{"error", "reason"}`.
"""

import importlib
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
Convert = Callable[[dict[str, Any]], Answer]


def ours() -> Convert:
    """The product: cell, then canonical body. `children`: with the text of files inside."""
    import asyncio
    import tempfile

    from kernel.errors import Refusal
    from kernel.media import SNIFF_BYTES, sniff
    from services.converter.cell import ParseCell
    from services.converter.domain import canonical
    from services.converter.settings import ConverterSettings

    runner = asyncio.Runner()
    cell = ParseCell(ConverterSettings())

    async def parse(path: Path, children: int) -> Answer:
        with path.open("rb") as file:
            media_type = sniff(file.read(SNIFF_BYTES), path.name)
        outcome = await cell.parse(path, media_type)
        body, meta, spans = canonical(outcome.document, path.stem)
        for attached, data in zip(outcome.document.attachments, outcome.files, strict=True):
            body += await child(attached.name, data, children - 1)
        return {
            "text": body,
            "pages": meta.pages,
            "title": meta.title,
            "language": meta.language,
            "media_type": media_type,
            "parser": outcome.parser,
            # Before the answer is written: that costs memory of its own.
            "beside_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "warnings": outcome.warnings,
            "missing_pages": outcome.missing_pages,
            "hidden": len(outcome.document.hidden),
            "spans": [(s.byte_start, s.byte_end, s.place.page) for s in spans],
            "attachments": len(outcome.files),
        }

    async def child(name: str, data: bytes, depth: int) -> str:
        if depth < 0:
            return ""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / (Path(name).name or "file")
            path.write_bytes(data)
            try:
                return f"\n\n{(await parse(path, depth))['text']}"
            except Refusal:
                return ""

    def convert(request: dict[str, Any]) -> Answer:
        try:
            return runner.run(parse(Path(request["path"]), request.get("children", 0)))
        except Refusal as refusal:
            return {"error": refusal.code, "reason": refusal.reason}

    return convert


def docling() -> Convert:
    """Plain docling; a PDF without the pipeline that needs weights from the hub."""
    models = importlib.import_module("docling.datamodel.base_models")
    module = importlib.import_module("docling.document_converter")
    # The default pipeline stops here with LocalEntryNotFoundError: there are no weights.
    native = {models.InputFormat.PDF: module.NativePdfFormatOption()}
    converter = module.DocumentConverter(format_options=native)

    def convert(request: dict[str, Any]) -> Answer:
        result = converter.convert(request["path"], raises_on_error=True)
        return {"text": result.document.export_to_markdown(), "pages": len(result.pages) or None}

    return convert


def markitdown() -> Convert:
    converter = importlib.import_module("markitdown").MarkItDown(enable_plugins=False)
    return lambda request: {"text": converter.convert(request["path"]).text_content}


def pypdf() -> Convert:
    module = importlib.import_module("pypdf")

    def convert(request: dict[str, Any]) -> Answer:
        pages = module.PdfReader(request["path"]).pages
        return {"text": "\n\n".join(p.extract_text() for p in pages), "pages": len(pages)}

    return convert


def pdfplumber() -> Convert:
    module = importlib.import_module("pdfplumber")

    def convert(request: dict[str, Any]) -> Answer:
        with module.open(request["path"]) as file:
            texts = [page.extract_text() or "" for page in file.pages]
        return {"text": "\n\n".join(texts), "pages": len(texts)}

    return convert


def trafilatura() -> Convert:
    module = importlib.import_module("trafilatura")
    return lambda request: {"text": module.extract(Path(request["path"]).read_bytes()) or ""}


ENGINES: dict[str, Callable[[], Convert]] = {
    f.__name__: f for f in (ours, docling, markitdown, pypdf, pdfplumber, trafilatura)
}


def main() -> None:
    """Answer until stdin ends."""
    out = os.fdopen(os.dup(1), "wb")
    # Libraries print; only answers may go down the pipe.
    os.dup2(2, 1)
    convert = ENGINES[sys.argv[1]]()
    for line in sys.stdin.buffer:
        try:
            answer = convert(json.loads(line))
        except Exception as error:  # noqa: BLE001 - what a converter raises is its result
            answer = {"error": type(error).__name__, "reason": " ".join(str(error).split())[:300]}
        out.write(json.dumps(answer).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
