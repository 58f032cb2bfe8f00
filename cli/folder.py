"""A project as plain folders: Markdown with front matter, the originals beside it."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cli.shelf import PAGE, Shelf, Shown, distinct, erasures, markdown, safe_stem, safe_suffix
from kernel.blobs import Blobs
from kernel.db import pool
from kernel.errors import Refusal
from kernel.log import Log

TRIES = 3
LISTING = "documents.jsonl"


@dataclass(frozen=True)
class Written:
    """What is in the folder."""

    documents: int
    versions: int
    position: int


async def write_folder(
    dsn: str,
    blobs: Blobs,
    project: str,
    folder: Path,
    *,
    as_of: datetime | None = None,
    historical: bool = False,
) -> Written:
    """Write the versions that are valid at `as_of` (default: now), or every one, into a new folder.

    Raises:
        Refusal: `not-empty`, `unknown-project`, `missing-blobs`, `conflict` (erasures all the
            while).
        OSError: the disk is full; nothing is left.
    """
    _check_new(folder)
    draft = folder.with_name(f".{folder.name}.part")
    database = await pool(dsn, service="kb-export")
    try:
        log = Log(database)
        for _ in range(TRIES):
            _emptied(draft)
            head = await log.head()
            shelf = await _fold(log, project, head)
            chosen = _chosen(shelf, as_of or datetime.now(UTC), historical=historical)
            lost = await _write(draft, blobs, chosen)
            if await erasures(log, await log.head()) != await erasures(log, head):
                continue
            if lost:
                raise Refusal("missing-blobs", f"the store lacks the text of {lost} versions")
            _publish(draft, folder)
            return Written(len({x.receipt.document_id for x in chosen}), len(chosen), head)
        raise Refusal("conflict", "documents are being erased; try again later", status=409)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        await database.close()


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refusal("not-empty", f"{folder} is there already; name a new folder")


def _emptied(draft: Path) -> None:
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)


def _publish(draft: Path, folder: Path) -> None:
    if folder.exists():
        folder.rmdir()
    draft.rename(folder)


async def _fold(log: Log, project: str, head: int) -> Shelf:
    shelf, after, found = Shelf(await erasures(log, head)), 0, False
    while after < head:
        for envelope in await log.read(after, PAGE):
            after = envelope.position
            if envelope.project == project and after <= head:
                found = True
                shelf.apply(envelope)
    if not found:
        raise Refusal("unknown-project", f"there is no project {project}", status=404)
    return shelf


def _chosen(shelf: Shelf, moment: datetime, *, historical: bool) -> list[Shown]:
    if historical:
        return [shown for d in shelf.documents for shown in shelf.line(d)]
    return [shown for d in shelf.documents if (shown := shelf.at(d, moment)) is not None]


async def _write(draft: Path, blobs: Blobs, chosen: Sequence[Shown]) -> int:
    """The files and a list of them; returns how many texts or originals are missing."""
    names = {x.receipt.document_id: x.receipt.name for x in chosen}
    stems = distinct([(d, safe_stem(name)) for d, name in sorted(names.items())])
    several = _several(chosen)
    rows, lost, used = [], 0, set[str]()
    for shown in chosen:
        receipt = shown.receipt
        stem = stems[receipt.document_id]
        if receipt.document_id in several:
            stem = f"{stem}@{_stamp(shown.window.valid_from)}"
        if f"{stem}.md" in used:  # a window without length begins where the next one does
            stem = f"{stem}-{receipt.version_id[:8]}"
        used.add(f"{stem}.md")
        original = f"{stem}.original{safe_suffix(receipt.name)}"
        try:
            text = await markdown(shown, blobs, original=original)
            async with blobs.local_path(receipt.source_id) as path:
                shutil.copyfile(path, draft / original)
        except FileNotFoundError:
            lost += 1
            continue
        (draft / f"{stem}.md").write_bytes(text)
        rows.append(
            {"file": f"{stem}.md", "original": original, "document_id": receipt.document_id,
             "version_id": receipt.version_id, "source_id": receipt.source_id,
             "source": receipt.source_key, "name": receipt.name,
             "valid_from": shown.window.valid_from.isoformat(),
             "valid_until": shown.window.valid_until and shown.window.valid_until.isoformat()}
        )  # fmt: skip
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (draft / LISTING).write_text("".join(lines), "utf-8")
    return lost


def _several(chosen: Sequence[Shown]) -> set[str]:
    """Documents of which more than one window is written."""
    seen: set[str] = set()
    twice: set[str] = set()
    for shown in chosen:
        document_id = shown.receipt.document_id
        (twice if document_id in seen else seen).add(document_id)
    return twice


def _stamp(moment: datetime) -> str:
    """`2025-01-31`, or with the time where it is not midnight in UTC; a name on every system."""
    moment = moment.astimezone(UTC)
    if (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0):
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%Y-%m-%dT%H%M%S.%fZ}"
