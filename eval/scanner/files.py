"""Files of evaluation data through the real converter, kept in a folder of the temp directory."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

from contracts.artifacts import BodyMeta, ParsedDocument
from eval.scanner.items import Item, Part
from eval.scanner.sets import rows
from services.scanner.texts import hidden_of, hidden_of_meta

if TYPE_CHECKING:
    from services.converter.cell import ParseCell

CACHE = Path(gettempdir()) / "citelog-eval-scanner"
MANIFESTS = {"phantomlint": "label_kb", "docx_hidden_hr": "label"}
"""Sets of files below `injection/`, and the field that says whether the scanner should speak."""

SKIPPED = {".md", ".json", ".jsonl", ".txt.md", ".dt", ".itxt"}
"""Ground truth and manifests of the parsing sets: no documents."""

PARSING = (
    "docling", "tika", "trafilatura", "encodings", "libreoffice_html", "pypdf_samples",
    "ocr_docling",
)  # fmt: skip


def labelled_files(data: Path, name: str) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """(file, label, groups) of a set with a manifest."""
    for row in rows(data / "injection" / name / "manifest.jsonl"):
        path = data / "injection" / name / row["file"]
        groups = {"technique": f"{row['technique']} {path.suffix}"}
        yield path, int(row[MANIFESTS[name]]), groups


def parsing_files(data: Path) -> Iterator[tuple[str, Path]]:
    """(set, file) of the honest files of the parsing sets."""
    for name in PARSING:
        for path in sorted((data / "parsing" / name).rglob("*")):
            if path.is_file() and not _is_truth(path):
                yield f"{name} (files)", path


def _is_truth(path: Path) -> bool:
    truth = "groundtruth" in path.parts or path.name in ("files.json", "LICENSE")
    return truth or (path.suffix in SKIPPED and path.parent.name != "md")


class Converter:
    """Turns files into items; a file is converted once for one revision of its parser."""

    def __init__(self, cell: "ParseCell") -> None:
        self._cell = cell
        self.refused: list[tuple[str, str]] = []
        """(file, code) of what the converter does not take."""

    async def item(self, path: Path, label: int, groups: dict[str, str]) -> Item | None:
        """None: the converter refuses the file."""
        made = await self._kept(path)
        if "code" in made:
            self.refused.append((path.name, made["code"]))
            return None
        parsed = ParsedDocument.model_validate(made["parsed"])
        meta = BodyMeta.model_validate(made["meta"])
        parts = (
            Part(parsed.markdown, hidden_of(parsed)),
            Part(made["body"], hidden_of_meta(meta)),
        )
        return Item(str(path), label, parts, groups)

    async def _kept(self, path: Path) -> dict[str, Any]:
        from kernel.media import sniff

        data = await asyncio.to_thread(path.read_bytes)
        media_type = sniff(data, path.name)
        key = f"{self._cell.parser_for(media_type)} {media_type} {path.stem}".encode() + data
        kept = CACHE / f"{hashlib.sha256(key).hexdigest()}.json"
        if kept.exists():
            found: dict[str, Any] = json.loads(kept.read_bytes())
            return found
        made = await self._made(path, media_type)
        CACHE.mkdir(exist_ok=True)
        unfinished = kept.with_suffix(".part")
        unfinished.write_text(json.dumps(made), "utf-8")
        unfinished.replace(kept)
        return made

    async def _made(self, path: Path, media_type: str) -> dict[str, Any]:
        from kernel.errors import Refusal
        from services.converter.language import Policy

        try:
            with (
                await self._cell.parse(path, media_type, Policy(check=False)) as parse,
                TemporaryDirectory() as folder,
            ):
                stored = Path(folder) / "parsed"
                stored.write_bytes(b"".join(parse.to_bytes()))
                with await self._cell.canonical(stored, path.stem) as body:
                    text = b"".join(body.to_bytes()).decode()
                    meta = body.meta.model_dump(mode="json")
                parsed = json.loads(stored.read_bytes()) | {"spans": [], "attachments": []}
                return {"parsed": parsed, "body": text, "meta": meta}
        except Refusal as refusal:
            return {"code": refusal.code}


@contextlib.asynccontextmanager
async def converter() -> AsyncIterator[Converter]:
    """With the settings of the environment; weights are not fetched."""
    from services.converter.cell import ParseCell
    from services.converter.settings import ConverterSettings

    async with ParseCell(ConverterSettings()) as cell:
        yield Converter(cell)


async def attack_files(data: Path) -> tuple[dict[str, list[Item]], list[tuple[str, str]]]:
    """Items of the sets with manifests, and what was refused (an attack that stays out)."""
    found: dict[str, list[Item]] = {}
    async with converter() as convert:
        for name in MANIFESTS:
            made = [await convert.item(*row) for row in labelled_files(data, name)]
            found[name] = [item for item in made if item is not None]
        return found, convert.refused


async def honest_files(
    data: Path, names: Iterable[str] = PARSING
) -> tuple[dict[str, list[Item]], list[tuple[str, str]]]:
    """Items of the parsing sets."""
    wanted = {f"{name} (files)" for name in names}
    found: dict[str, list[Item]] = {}
    async with converter() as convert:
        for name, path in parsing_files(data):
            if name in wanted:
                item = await convert.item(path, 0, {})
                found.setdefault(name, []).extend([item] if item is not None else [])
        return found, convert.refused
