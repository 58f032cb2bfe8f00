"""The drop-zone as a folder: what waits in it, what was taken out of it, where it ends up.

    <zone>/<project>/…       files to take in; at the top level: project `default`
    <zone>/.working/<job>/   a file that was taken: `file`, `item.json`, at the end `verdict.json`
    <zone>/done/…            taken in; its path below the zone is kept
    <zone>/failed/…          not taken in; `<name>.error.txt` beside it says why. Of a blocked file
                             only that is left

Every step is one rename, and what a later step needs to know is on disk before it. So a process
may be killed anywhere: the next one finds a file in exactly one of these places and goes on.
"""

import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import structlog

log = structlog.get_logger()
WORKING, DONE, FAILED = ".working", "done", "failed"
UNFINISHED = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".swp", "~")
LEFT_ALONE = ("~$", ".", "~")


@dataclass(frozen=True)
class Stamp:
    """What changes when a file is written."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, info: os.stat_result) -> "Stamp":
        """Of a file's status."""
        return cls(info.st_size, info.st_mtime_ns, info.st_ino)


@dataclass
class Taken:
    """A file that was taken out of the zone. The folder's name is the id of its job."""

    folder: Path
    path: str
    """Where it was, below the zone."""
    stamp: Stamp
    tries: int = 0

    @property
    def job(self) -> UUID:
        """Id of the job that the file begins."""
        return UUID(self.folder.name)

    @property
    def file(self) -> Path:
        """The file, while nobody settled it."""
        return self.folder / "file"


def is_left_alone(name: str) -> bool:
    """Hidden files, and those that a program has not finished yet."""
    return name.startswith(LEFT_ALONE) or name.lower().endswith(UNFINISHED)


def is_being_written(path: Path) -> bool:
    """Has any process the file open for writing? False where the system cannot tell.

    Linux gives a read lease only on a file that nobody writes, and only to its owner.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # A writer that comes while we hold the lease: SIGURG is ignored by default, SIGIO kills.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # not ours, or no file system that knows leases
    finally:
        os.close(handle)
    return False


class Zone:
    """One folder. Its methods block: they are for threads."""

    def __init__(self, root: Path, quiet: float) -> None:
        self.root, self._quiet = root.absolute(), quiet
        self._seen: dict[str, tuple[Stamp, float]] = {}
        self._lock: int | None = None
        self._turn = threading.Lock()
        self._told: set[str] = set()

    def open(self) -> bool:
        """Make the folders and take the zone; False: another process has it."""
        for folder in (self.root, *(self.root / n for n in (WORKING, DONE, FAILED))):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(
            self.root / WORKING / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._lock = handle
        return True

    def close(self) -> None:
        """Leave the zone to another process, when a thread that moves a file is done."""
        with self._turn:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """One thread moves files at a time: a name that is free stays free until it is used."""
        with self._turn:
            if self._lock is None:
                raise OSError(errno.EBADF, "the zone was left")
            yield

    def ripe(self, now: float) -> list[str]:
        """Paths of files that did not change for `quiet` seconds and that nobody writes.

        Args:
            now: a clock that only goes forward, seconds.
        """
        there = {path: Stamp.of(info) for path, info in self._waiting()}
        before, self._seen = self._seen, {}
        found = []
        for path, stamp in there.items():
            known = before.get(path)
            since = known[1] if known and known[0] == stamp else now
            self._seen[path] = (stamp, since)
            if now - since >= self._quiet and not is_being_written(self.root / path):
                found.append(path)
        return sorted(found, key=lambda p: (there[p].mtime_ns, p))

    def _waiting(self) -> Iterator[tuple[str, os.stat_result]]:
        """Plain files below the zone, links not followed."""
        folders = [""]
        while folders:
            folder = folders.pop()
            for entry in self._entries(folder):
                path = f"{folder}{entry.name}"
                if is_left_alone(entry.name) or (not folder and entry.name in (DONE, FAILED)):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError as error:
                    if not isinstance(error, FileNotFoundError):  # that went while we looked
                        self._tell(path, error.strerror or str(error))
                    continue
                if stat.S_ISDIR(info.st_mode):
                    folders.append(f"{path}/")
                elif stat.S_ISREG(info.st_mode):
                    yield path, info
                else:
                    self._tell(path, "neither a file nor a folder: left alone")

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(self.root / folder) as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._tell(folder, error.strerror or str(error))
            return []

    def _tell(self, path: str, why: str) -> None:
        """Say once what stays in the zone, and why."""
        if path not in self._told:
            self._told.add(path)
            log.warning("dropzone.left", path=path[-300:], why=why)

    def take(self, path: str) -> Taken | None:
        """Move a file out of the zone; None if it is gone, or cannot be moved (that is logged)."""
        folder = self.root / WORKING / str(uuid4())
        try:
            with self._moving():
                return self._take(path, folder)
        except OSError as error:
            self._tell(path, f"cannot be moved: {error.strerror}")
            shutil.rmtree(folder, ignore_errors=True)
            return None

    def _take(self, path: str, folder: Path) -> Taken:
        folder.mkdir(mode=0o700)
        stamp, _ = self._seen.pop(path)
        taken = Taken(folder, path, stamp)
        self._write(folder / "item.json", {"path": path, "stamp": vars(stamp), "tries": 0})
        _rename(self.root / path, taken.file)
        return taken

    def recover(self) -> list[Taken]:
        """What an earlier process had taken; what it was about to settle is settled."""
        left = []
        for folder in sorted((self.root / WORKING).iterdir()):
            if not folder.is_dir():
                continue
            taken, verdict = self._recorded(folder), _read(folder / "verdict.json")
            if verdict:
                self._finish(taken, verdict["target"], verdict["error"], verdict.get("keep", True))
            elif taken.file.exists():
                left.append(taken)
            else:
                shutil.rmtree(folder)  # killed before the file was moved: it is where it was
        return left

    def _recorded(self, folder: Path) -> Taken:
        """What `item.json` says; of a file that lost it (a power cut), what is left to say."""
        item = _read(folder / "item.json")
        if item:
            return Taken(folder, item["path"], Stamp(**item["stamp"]), int(item["tries"]) + 1)
        with suppress(FileNotFoundError):
            return Taken(folder, folder.name, Stamp.of((folder / "file").lstat()), 1)
        return Taken(folder, folder.name, Stamp(0, 0, 0))

    def count_try(self, taken: Taken) -> None:
        """Remember that work on the file begins again, for a process that dies of it."""
        if not taken.tries:
            return
        item = {"path": taken.path, "stamp": vars(taken.stamp), "tries": taken.tries}
        self._write(taken.folder / "item.json", item)

    def is_changed(self, taken: Taken) -> bool:
        """Was the file written after it was taken?"""
        now = Stamp.of(taken.file.lstat())
        return (now.size, now.mtime_ns) != (taken.stamp.size, taken.stamp.mtime_ns)

    def put_back(self, taken: Taken) -> bool:
        """Where it was, to be taken again when it is quiet; False if something else is there."""
        place = self.root / taken.path
        with self._moving():
            place.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(place):
                return False
            _rename(taken.file, place)
            shutil.rmtree(taken.folder)
            return True

    def settle(self, taken: Taken, error: str | None, *, keep: bool = True) -> Path:
        """Move a taken file to `done`, or to `failed` with `error` beside it; returns where.

        Without `keep` the file is deleted, and `error` is what stays in its place.
        """
        with self._moving():
            target = self._free(DONE if error is None else FAILED, taken.path)
            verdict = {"target": target, "error": error, "keep": keep}
            self._write(taken.folder / "verdict.json", verdict)
            return self._finish(taken, target, error, keep)

    def discard(self, taken: Taken) -> None:
        """Delete a taken file, and leave nothing in its place."""
        with self._moving():
            shutil.rmtree(taken.folder)

    def _finish(self, taken: Taken, target: str, error: str | None, keep: bool) -> Path:
        place = self.root / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if error is not None:
            _write_text(place.with_name(_error_name(place.name)), error)
        if keep and taken.file.exists():
            _rename(taken.file, place)
        shutil.rmtree(taken.folder)
        return place

    def _free(self, top: str, path: str) -> str:
        """A path below `top` that is not taken: `a.pdf`, then `a~2.pdf`."""
        folder, _, name = path.rpartition("/")
        below = f"{top}/{folder}/" if folder else f"{top}/"
        dot = name.rfind(".")
        stem, suffix = (name[:dot], name[dot:]) if dot > 0 else (name, "")
        n, chosen = 1, name
        while any(
            os.path.lexists(self.root / f"{below}{x}") for x in (chosen, _error_name(chosen))
        ):
            n += 1
            chosen = f"{_cut(stem, 200)}~{n}{suffix}"
        return f"{below}{chosen}"

    def _write(self, file: Path, value: Any) -> None:
        _write_text(file, json.dumps(value))


def _error_name(name: str) -> str:
    """`a.pdf.error.txt`; of a name that is too long for that, its beginning."""
    return f"{_cut(name, 240)}.error.txt"


def _cut(name: str, most: int) -> str:
    """The first `most` bytes of a name, as whole characters."""
    return (
        os.fsencode(name)[:most].decode("utf-8", "ignore")
        if len(os.fsencode(name)) > most
        else name
    )


def _read(file: Path) -> Any:
    with suppress(FileNotFoundError, ValueError):
        return json.loads(file.read_text("utf-8"))
    return None


def _write_text(file: Path, text: str) -> None:
    """Whole or not at all, also through a power cut."""
    draft = file.with_name(f".{uuid4().hex}.tmp")
    with draft.open("w", encoding="utf-8", errors="backslashreplace") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)


def _rename(source: Path, target: Path) -> None:
    """Move a file; over a border of file systems by a copy that gets its name when it is whole."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = target.with_name(f".{uuid4().hex}.tmp")
        shutil.copy2(source, draft, follow_symlinks=False)
        draft.rename(target)
        source.unlink()
