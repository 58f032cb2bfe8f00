"""Files that the drop-zone put away: an erasure takes them along."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from kernel.errors import Retry
from services.ingest.zone import DONE, FAILED

NOTE = ".error.txt"
_NOTE_BYTES = 8192


class Dropped:
    """The folders `done` and `failed` of a zone. Blocks: it is for threads."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def forget(
        self,
        source_id: str,
        sizes: Collection[int],
        paths: Collection[str] = (),
        *,
        shared: bool = False,
        notes: bool = True,
    ) -> int:
        """Delete every file with these bytes and the note beside it; returns how many files.

        Args:
            source_id: SHA-256 of the bytes.
            sizes: lengths that they may have; no other file is read.
            paths: where the files were, below the zone: folders there that are empty go too.
            shared: others have the same bytes; only files that were at `paths` go.
            notes: those of blocked files with these bytes, which were not kept, go too.

        Raises:
            Retry: a file cannot be read or deleted now.
        """
        gone = 0
        try:
            for file in self._files():
                if notes and file.name.endswith(NOTE) and _tells_of(file, source_id):
                    self._remove(file)
                elif _size(file) in sizes and _sha256(file) == source_id:
                    if shared and self._path(file) not in paths:
                        continue
                    self._remove(file)
                    self._remove(file.with_name(f"{file.name}{NOTE}"))
                    gone += 1
            for path in paths:
                self._tidy(self._root / path)
        except OSError as error:
            raise Retry(f"drop-zone: {error.strerror}", after=30) from error
        return gone

    def _files(self) -> Iterator[Path]:
        for top in (DONE, FAILED):
            for folder, _, names in os.walk(self._root / top):
                yield from (Path(folder, name) for name in names)

    def _path(self, file: Path) -> str:
        """Where it was, below the zone."""
        return "/".join(file.relative_to(self._root).parts[1:])

    def _remove(self, file: Path) -> None:
        """Delete a file, and the folders that it leaves empty."""
        file.unlink(missing_ok=True)
        self._tidy(file)

    def _tidy(self, file: Path) -> None:
        """Remove the empty folders above a file: their names are words too. Those at the top of the
        zone stay: projects, `done`, `failed`."""
        with suppress(OSError):
            for folder in file.parents:
                if self._root not in folder.parent.parents:
                    break
                folder.rmdir()


def _size(file: Path) -> int:
    """Length of a plain file, -1 of anything else."""
    with suppress(FileNotFoundError):
        info = file.lstat()
        return info.st_size if stat.S_ISREG(info.st_mode) else -1
    return -1


def _sha256(file: Path) -> str:
    with suppress(FileNotFoundError), file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
    return ""


def _tells_of(note: Path, source_id: str) -> bool:
    """Is it the note of a blocked file, which says the hash of what is not kept?"""
    with suppress(FileNotFoundError), note.open("rb") as opened:
        return f"sha256: {source_id}\n".encode() in opened.read(_NOTE_BYTES)
    return False
