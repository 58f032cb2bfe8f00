"""Real documents for benchmarks and the crash test: evaluation data, or the examples."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
EVALDATA = ROOT.parent / "shared" / "evaldata"


def documents(count: int) -> list[tuple[str, bytes]]:
    """`count` files (name, bytes), distinct, in several formats and accepted languages.

    From `../shared/evaldata` where it is; else the examples, each with a numbered paragraph more.
    """
    found = list(islice(_evaldata() if EVALDATA.exists() else _examples(), count))
    if len(found) < count:
        raise ValueError(f"only {len(found)} documents are there")
    return found


def _evaldata() -> Iterator[tuple[str, bytes]]:
    """Interleaved: every fourth a file in its own format, the rest help pages and law."""
    files, texts = list(_files()), _texts()
    for text in texts:
        yield text
        if files and sum(text[1][:4]) % 3 == 0:
            yield files.pop(0)


def _files() -> Iterator[tuple[str, bytes]]:
    """DOCX, PDF and HTML that docling's own tests use, and German laws as Markdown."""
    wanted = [
        *sorted((EVALDATA / "retrieval" / "german_laws").rglob("*.md"))[:4],
        *sorted((EVALDATA / "parsing" / "docling").rglob("*.docx"))[:6],
        *sorted((EVALDATA / "parsing" / "libreoffice_html").rglob("*.html"))[:6],
        *sorted((EVALDATA / "parsing" / "docling").rglob("*.pdf"))[:4],
    ]
    for path in wanted:
        if path.stat().st_size < 400_000:
            yield path.name, path.read_bytes()


def _texts() -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    folders = sorted((EVALDATA / "retrieval" / "gnome_help").rglob("corpus.jsonl"))
    streams = [(f.parent.name, f.open(encoding="utf-8")) for f in folders]
    for n in range(400):
        for name, stream in streams:
            line = stream.readline()
            if not line:
                continue
            page = json.loads(line)
            if len(page["text"]) > 600 and page["text"] not in seen:
                seen.add(page["text"])
                text = f"# {page['title']}\n\n{page['text']}\n"
                yield f"{name}-{n}.md", text.encode()


def _examples() -> Iterator[tuple[str, bytes]]:
    pages = sorted((ROOT / "docs" / "examples").glob("*.md"))
    for n in range(1000):
        for page in pages:
            yield f"{n}-{page.name}", page.read_bytes() + f"\n\nCopy number {n}.\n".encode()
