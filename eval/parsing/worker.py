"""One converter as a process: `python worker.py ENGINE`, a JSON request and answer a line.

Imports only the standard library, so that the peers' interpreter can run it as a file. A request is
`{"path", "media_type", "children"}`, an answer `{"text", "pages", …}` or `{"error", "reason"}`.
"""

import importlib
import json
import os
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
    from services.converter.settings import ConverterSettings

    runner = asyncio.Runner()
    cell = ParseCell(ConverterSettings())

    async def parse(path: Path, children: int, long: bool = False) -> Answer:
        with path.open("rb") as file:
            media_type = sniff(file.read(SNIFF_BYTES), path.name)
        with tempfile.TemporaryDirectory() as folder, await cell.parse(path, media_type) as parsed:
            stored = Path(folder) / "parsed"
            with stored.open("wb") as file:
                file.writelines(parsed.to_bytes())
            with await cell.canonical(stored, path.stem) as body:
                answer = _told(parsed, body, long=long)
            answer["media_type"] = media_type
            named = zip(parsed.head.attachments, parsed.files, strict=True)
            for attached, pieces in named if not long else ():
                answer["text"] += await child(attached.name, b"".join(pieces), children - 1)
            return answer

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
            path, children = Path(request["path"]), request.get("children", 0)
            return runner.run(parse(path, children, request.get("long", False)))
        except Refusal as refusal:
            return {"error": refusal.code, "reason": refusal.reason}

    return convert


def _told(parsed: Any, body: Any, *, long: bool) -> Answer:
    """What is measured of a parse and its body; of a `long` one not the text, only its size."""
    spans = [] if long else json.loads(b"".join(body.places("0" * 64)))["spans"]
    notes = parsed.head.notes
    return {
        "text": "" if long else b"".join(body.to_bytes()).decode(),
        "size": sum(len(piece) for piece in body.to_bytes()),
        "pages": body.meta.pages,
        "title": body.meta.title,
        "language": body.meta.language,
        "parser": parsed.parser,
        "warnings": notes.warnings,
        "missing_pages": notes.missing_pages,
        "hidden": parsed.hidden,
        "spans": [(s["byte_start"], s["byte_end"], s["place"]["page"]) for s in spans],
        "attachments": len(parsed.files),
    }


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
