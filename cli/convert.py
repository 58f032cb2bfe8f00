"""`kb convert`: parse, clean and structure files without a running stack."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import CliError, clean, note, out, raw

if TYPE_CHECKING:
    from services.converter.cell import ParseCell
    from services.converter.language import Policy
    from services.converter.outcome import BodyOutcome, ParseOutcome
    from services.converter.settings import ConverterSettings

MOST_NESTED = 5
"""Mails in mails in mails: how deep attachments are converted."""


@dataclass
class Converted:
    """What became of one file. `out`, `spans`: paths of what was written."""

    file: str
    ok: bool = False
    out: str | None = None
    spans: str | None = None
    media_type: str = ""
    title: str = ""
    language: str = ""
    shares: dict[str, float] = field(default_factory=dict)
    pages: int | None = None
    missing_pages: tuple[int, ...] = ()
    readings: tuple[dict[str, Any], ...] = ()
    parser: str = ""
    hidden: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str | None = None
    reason: str | None = None
    attachments: tuple["Converted", ...] = ()


def convert(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders with files.")],
    to: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the Markdown; without it, one file to stdout."),
    ] = None,
    any_language: Annotated[
        bool, typer.Option("--any-language", help="Also languages that an ingest would refuse.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="One line of JSON a file.")] = False,
) -> None:
    """Convert files to canonical Markdown as an ingest would; no stack has to run.

    FILE.md gets the front matter and the body, FILE.spans.json says where in the source each part
    of the body came from, attachments go to FILE.attachments/. Exit 0 only if all went well.
    """
    found = list(files_in(files))
    if not found:
        raise CliError("nothing to convert", f"no file in {', '.join(map(str, files))}")
    if to is None and (len(found) != 1 or json_):
        raise CliError("no folder to write to", "several files, or --json, need --out DIR")
    done = asyncio.run(_convert(found, to, check_language=not any_language, json_=json_))
    if len(done) > 1 and not json_:
        _sum_up(done)
    raise typer.Exit(0 if all(row.ok for row in done) else 1)


def files_in(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Each file with its place below the output folder."""
    for path in paths:
        if path.is_dir():
            for inner in sorted(p for p in path.rglob("*") if p.is_file()):
                yield inner, inner.relative_to(path)
        elif path.exists():
            yield path, Path(path.name)
        else:
            raise CliError("no such file", str(path))


async def _convert(
    files: Sequence[tuple[Path, Path]], to: Path | None, *, check_language: bool, json_: bool
) -> list[Converted]:
    async with _converter(check_language=check_language) as converter:
        if to is None:
            row = await converter.to_stdout(files[0][0])
            _tell(row, json_=False, quiet=True)
            return [row]
        done = []
        for (path, _), target in zip(files, _targets(files, to), strict=True):
            done.append(await converter.to_file(path, target))
            _tell(done[-1], json_=json_)
        return done


def _targets(files: Sequence[tuple[Path, Path]], to: Path) -> Iterator[Path]:
    """`report.md` for `report.pdf`; `report.pdf.md` where `report.docx` is converted as well.

    No two files have the same one: `x/a.txt` and `y/a.txt` become `a.txt.md` and `a.txt-2.md`.
    """
    stems = Counter(place.with_suffix("") for _, place in files)
    taken: set[Path] = set()
    for _, place in files:
        stem = place.with_suffix("")
        name = place.name if stems[stem] > 1 else stem.name
        target = place.with_name(f"{name}.md")
        number = 1
        while target in taken:
            number += 1
            target = place.with_name(f"{name}-{number}.md")
        taken.add(target)
        yield to / target


def _sum_up(done: Sequence[Converted]) -> None:
    """Name what was refused once more: in a long run it scrolled away."""
    refused = [row for row in done if not row.ok]
    if refused:
        note(f"{len(refused)} of {len(done)} files were not converted:")
    for row in refused:
        note(clean(f"  {row.file}: {row.reason} ({row.code})", one_line=True))


def _tell(row: Converted, *, json_: bool, quiet: bool = False) -> None:
    if json_:
        out(json.dumps(asdict(row), ensure_ascii=False))
        return
    if not row.ok:
        note(clean(f"error: {row.file}: {row.reason} ({row.code})", one_line=True))
    elif not quiet:
        facts = [row.language, f"{row.pages} pages" if row.pages else "", row.parser]
        told = ", ".join(fact for fact in facts if fact)
        out(clean(f"{row.file} → {row.out}: {told}, {row.seconds:.1f} s", one_line=True))
    for warning in row.warnings:
        note(clean(f"warning: {row.file}: {warning}", one_line=True))
    for inner in row.attachments:
        _tell(inner, json_=False, quiet=quiet)


@contextlib.asynccontextmanager
async def _converter(*, check_language: bool) -> AsyncIterator["_Converter"]:
    from services.converter.cell import ParseCell
    from services.converter.language import Policy

    settings = settings_of_converter()
    async with ParseCell(settings) as cell:
        yield _Converter(cell, Policy(settings.accepted, check_language))


def settings_of_converter() -> "ConverterSettings":
    """What the environment says; a `CliError` names the variable that cannot be used."""
    from pydantic import ValidationError

    from services.converter.settings import ConverterSettings
    from services.converter.weights import with_weights

    try:
        return with_weights(ConverterSettings())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper()
        name = name if name.startswith("KB_") else f"KB_CONVERTER_{name}"
        raise CliError(f"{name} cannot be used", first["msg"]) from None


class _Converter:
    """Converts one file after another in one warm child process."""

    def __init__(self, cell: "ParseCell", policy: "Policy") -> None:
        self._cell, self._policy = cell, policy

    async def to_stdout(self, path: Path) -> Converted:
        """The Markdown of `path` on standard output; attachments are only named."""
        row = Converted(str(path))
        async with self._made(row, path) as made:
            if made is not None and not sys.stdout.isatty():
                for part in made.markdown():
                    raw(part)
            elif made is not None:
                out(clean(b"".join(made.markdown()).decode()))
        return row

    async def to_file(self, path: Path, target: Path, depth: int = 0) -> Converted:
        """Markdown, places and attachments of `path`, beside `target`."""
        row = Converted(str(path))
        async with self._made(row, path) as made:
            if made is None:
                return row
            places = target.with_name(f"{target.name.removesuffix('.md')}.spans.json")
            # Whole or not at all: a reader must not find half a file under its name.
            _write(target, made.markdown())
            _write(places, made.places())
            row.out, row.spans = str(target), str(places)
            folder = target.with_name(f"{target.name.removesuffix('.md')}.attachments")
            row.attachments = tuple(await self._attachments(made.files(), folder, depth + 1))
        return row

    async def _attachments(
        self, files: Iterable[tuple[str, Iterable[bytes]]], folder: Path, depth: int
    ) -> list[Converted]:
        done = []
        # What an earlier run left is written over; what this mail brought is not.
        taken: set[str] = set()
        for number, (name, data) in enumerate(files, 1):
            free = name if taken.isdisjoint(_written(name)) else f"{number}-{name}"
            taken.update(_written(free))
            path = folder / free
            _write(path, data)
            if depth > MOST_NESTED:
                done.append(Converted(str(path), code="too-deep", reason="attached too deeply"))
            else:
                done.append(await self.to_file(path, path.with_name(f"{path.name}.md"), depth))
        return done

    @contextlib.asynccontextmanager
    async def _made(self, row: Converted, path: Path) -> AsyncIterator["_Made | None"]:
        """What became of the file at `path`, on disk, with `row` filled; None if it is refused."""
        from kernel.errors import Refusal

        started = time.perf_counter()
        made: _Made | None = None
        with contextlib.ExitStack() as kept:
            try:
                opened = kept.enter_context(readable(path))
                made = await self._make(row, opened, path, kept)
                row.ok = True
            except Refusal as refusal:
                row.code, row.reason = refusal.code, refusal.reason
            row.seconds = round(time.perf_counter() - started, 3)
            try:
                yield made
            except Refusal as refusal:
                # What a child answered is checked as it is read.
                row.ok, row.code, row.reason = False, refusal.code, refusal.reason

    async def _make(
        self, row: Converted, path: Path, named: Path, kept: contextlib.ExitStack
    ) -> "_Made":
        from kernel.errors import Refusal
        from kernel.media import SNIFF_BYTES, lie, sniff

        with path.open("rb") as file:
            row.media_type = sniff(file.read(SNIFF_BYTES), named.name)
        parse = kept.enter_context(await self._cell.parse(path, row.media_type, self._policy))
        with TemporaryDirectory(prefix="kb-convert-") as folder:
            stored = Path(folder) / "parsed"
            _write(stored, parse.to_bytes())
            body = kept.enter_context(await self._cell.canonical(stored, named.stem))
        if not body.size_bytes:
            raise Refusal("empty-document", "the document has no text")
        liar = lie(named.name, row.media_type)
        notes = parse.head.notes
        row.title, row.language, row.shares = body.meta.title, body.meta.language, notes.shares
        row.pages, row.missing_pages = body.meta.pages, notes.missing_pages
        row.readings = tuple(reading.model_dump() for reading in notes.readings)
        row.parser, row.hidden = parse.parser, parse.hidden
        row.warnings = (*((liar,) if liar else ()), *notes.warnings)
        return _Made(parse, body, named.name)


class _Made:
    """A converted file, read from disk in pieces."""

    def __init__(self, parse: "ParseOutcome", body: "BodyOutcome", source: str) -> None:
        self._parse, self._body, self._source = parse, body, source

    def markdown(self) -> Iterator[bytes]:
        """Front matter and body."""
        from kernel.front_matter import front_matter

        yield f"{front_matter(self._body.meta, {'source': self._source})}\n".encode()
        yield from self._body.to_bytes()

    def places(self) -> Iterator[bytes]:
        """The body's span map."""
        from kernel.blobs import sha256_of

        return self._body.places(sha256_of(self._body.to_bytes()))

    def files(self) -> list[tuple[str, Iterator[bytes]]]:
        """Attachments by name."""
        names = [a.name for a in self._parse.head.attachments]
        return list(zip(names, self._parse.files, strict=True))


def _written(name: str) -> tuple[str, str, str]:
    """What is written for an attachment of this name."""
    return name, f"{name}.md", f"{name}.spans.json"


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A path that the child can open: standard input and pipes are copied first."""
    if path.is_file():
        yield path
        return
    with TemporaryDirectory(prefix="kb-convert-") as folder:
        copy = Path(folder) / "input"
        with path.open("rb") as source, copy.open("wb") as target:
            copyfileobj(source, target)
        yield copy


def _write(path: Path, parts: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(parts)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
