"""The folder of the drop-zone: what is ripe, what is left alone, kills between any two steps."""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.ingest.zone import Zone, is_being_written


def made(root: Path, quiet: float = 0) -> Zone:
    zone = Zone(root, quiet)
    assert zone.open()
    return zone


def put(root: Path, path: str, text: str = "text") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def below(root: Path) -> set[str]:
    """Every file that a person would find, and what is in work."""
    files = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return {f for f in files if not f.endswith("/.lock")}


def test_a_file_is_ripe_when_it_was_quiet_for_long_enough(tmp_path: Path) -> None:
    zone = made(tmp_path, quiet=5)
    file = put(tmp_path, "a.md")
    assert zone.ripe(0) == []
    assert zone.ripe(4.9) == []
    file.write_text("more text")
    assert zone.ripe(5) == []
    assert zone.ripe(9.9) == []
    assert zone.ripe(10) == ["a.md"]


def test_a_file_that_is_open_for_writing_is_not_ripe(tmp_path: Path) -> None:
    zone = made(tmp_path)
    file = put(tmp_path, "a.md")
    with file.open("a"):
        assert is_being_written(file)
        assert zone.ripe(0) == []
    with file.open():
        assert zone.ripe(1) == ["a.md"]


@pytest.mark.parametrize(
    "name",
    [".hidden", ".~lock.a.odt#", "~$a.docx", "a.part", "a.PDF.part", "a.tmp", "a.crdownload",
     "a.md~", ".git/config", "done/a.md", "failed/a.md", "failed/a.md.error.txt"],
)  # fmt: skip
def test_hidden_and_unfinished_files_are_left_alone(tmp_path: Path, name: str) -> None:
    zone = made(tmp_path)
    put(tmp_path, name)
    assert zone.ripe(0) == []
    assert (tmp_path / name).exists()


def test_folders_named_done_deeper_down_are_folders(tmp_path: Path) -> None:
    zone = made(tmp_path)
    put(tmp_path, "law/done/a.md")
    assert zone.ripe(0) == ["law/done/a.md"]


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "secret.md")
    zone = made(tmp_path / "zone")
    (tmp_path / "zone" / "link.md").symlink_to(outside / "secret.md")
    (tmp_path / "zone" / "folder").symlink_to(outside)
    os.mkfifo(tmp_path / "zone" / "pipe.md")
    assert zone.ripe(0) == []


@pytest.mark.parametrize("path", ["Закон о раду.md", "法/a b.md", "x/" * 40 + "a.md", "\udcff.md"])
def test_any_name_is_found_taken_and_settled(tmp_path: Path, path: str) -> None:
    zone = made(tmp_path)
    put(tmp_path, path)
    assert zone.ripe(0) == [path]
    taken = zone.take(path)
    assert taken and taken.file.read_text() == "text"
    assert zone.settle(taken, "no") == tmp_path / "failed" / path
    error = tmp_path / "failed" / f"{path}.error.txt"
    assert error.read_text() == "no"
    assert list((tmp_path / ".working").iterdir()) == [tmp_path / ".working" / ".lock"]


def test_a_name_that_is_in_done_already_gets_a_number(tmp_path: Path) -> None:
    zone = made(tmp_path)
    for n in range(3):
        put(tmp_path, "x/a.tar.md", str(n))
        _through(zone, "x/a.tar.md")
    found = {p.name: p.read_text() for p in (tmp_path / "done" / "x").iterdir()}
    assert found == {"a.tar.md": "0", "a.tar~2.md": "1", "a.tar~3.md": "2"}


def test_an_error_file_never_names_another_file(tmp_path: Path) -> None:
    zone = made(tmp_path)
    put(tmp_path, "failed/a.md.error.txt", "of an older one")
    put(tmp_path, "a.md")
    place = _through(zone, "a.md", "why")
    assert place.name == "a~2.md"
    assert (tmp_path / "failed" / "a.md.error.txt").read_text() == "of an older one"


def test_the_longest_name_has_room_for_its_error(tmp_path: Path) -> None:
    zone = made(tmp_path)
    for _ in range(2):
        put(tmp_path, "я" * 126 + ".md")
        _through(zone, "я" * 126 + ".md", "why")
    files = list((tmp_path / "failed").iterdir())
    assert len([p for p in files if p.name.endswith(".error.txt")]) == 2


def _through(zone: Zone, path: str, error: str | None = None, *, keep: bool = True) -> Path:
    assert path in zone.ripe(0)
    taken = zone.take(path)
    assert taken
    return zone.settle(taken, error, keep=keep)


def test_a_file_that_changed_goes_back_to_its_place(tmp_path: Path) -> None:
    zone = made(tmp_path)
    put(tmp_path, "x/a.md")
    zone.ripe(0)
    taken = zone.take("x/a.md")
    assert taken and not zone.is_changed(taken)
    taken.file.write_text("longer than before")
    assert zone.is_changed(taken)
    assert zone.put_back(taken)
    assert (tmp_path / "x/a.md").read_text() == "longer than before"


def test_a_file_does_not_go_back_over_another(tmp_path: Path) -> None:
    zone = made(tmp_path)
    put(tmp_path, "a.md", "old")
    zone.ripe(0)
    taken = zone.take("a.md")
    put(tmp_path, "a.md", "new")
    assert taken and not zone.put_back(taken)
    assert (tmp_path / "a.md").read_text() == "new"


def test_a_file_that_went_meanwhile_is_no_error(tmp_path: Path) -> None:
    zone = made(tmp_path)
    file = put(tmp_path, "a.md")
    zone.ripe(0)
    file.unlink()
    assert zone.take("a.md") is None
    assert zone.recover() == []


def test_one_process_at_a_time_has_the_zone(tmp_path: Path) -> None:
    first, second = made(tmp_path), Zone(tmp_path, 0)
    assert not second.open()
    first.close()
    assert second.open()


def test_another_file_system_is_reached_by_a_whole_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = made(tmp_path)
    put(tmp_path, "a.md")
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if not self.name.endswith(".tmp"):
            raise OSError(errno.EXDEV, "another device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert _through(zone, "a.md").read_text() == "text"
    assert below(tmp_path) == {"done/a.md"}


class Killed(BaseException):
    """The process ends here."""


def kill_at(monkeypatch: pytest.MonkeyPatch, n: int) -> Callable[[], int]:
    """Let the n-th change on disk (from 0) not happen, nor any after it."""
    lock, done = threading.Lock(), 0

    def guarded(function: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal done
            with lock:
                done += 1
                if done > n:
                    raise Killed
            return function(*args, **more)

        return call

    for name in ("mkdir", "rename", "replace"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))
    monkeypatch.setattr(shutil, "rmtree", guarded(shutil.rmtree))
    return lambda: done


@pytest.mark.parametrize(("error", "keep"), [(None, True), ("why", True), ("why", False)])
@pytest.mark.parametrize("n", range(14))
def test_a_kill_between_any_two_steps_loses_nothing_and_doubles_nothing(
    tmp_path: Path, n: int, error: str | None, keep: bool
) -> None:
    put(tmp_path, "x/a.md", "the text")
    zone = made(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        steps = kill_at(patch, n)
        try:
            _through(zone, "x/a.md", error, keep=keep)
        except Killed:
            pass
        else:
            assert steps() <= n
    zone.close()
    zone = made(tmp_path)
    for taken in zone.recover():
        zone.settle(taken, error, keep=keep)
    for path in zone.ripe(0):
        _through(zone, path, error, keep=keep)
    expected = {"done/x/a.md"} if error is None else {"failed/x/a.md.error.txt"}
    if error and keep:
        expected |= {"failed/x/a.md"}
    # A draft that a kill left is hidden, and is no document.
    assert {f for f in below(tmp_path) if not f.rpartition("/")[2].startswith(".")} == expected


def test_the_kills_cover_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "x/a.md")
    zone = made(tmp_path)
    steps = kill_at(monkeypatch, 1000)
    _through(zone, "x/a.md", "why")
    assert 8 <= steps() < 14


def test_a_file_without_its_record_is_not_thrown_away(tmp_path: Path) -> None:
    zone = made(tmp_path)
    put(tmp_path, "a.md", "the only copy")
    zone.ripe(0)
    taken = zone.take("a.md")
    assert taken
    (taken.folder / "item.json").write_bytes(b"\x00\x00")
    (again,) = zone.recover()
    assert zone.settle(again, None).read_text() == "the only copy"


def test_what_cannot_be_looked_into_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = made(tmp_path)
    put(tmp_path, "a.md")
    put(tmp_path, "closed/b.md")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).rstrip("/").endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert zone.ripe(0) == ["a.md"]


def test_a_file_that_cannot_be_moved_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = made(tmp_path)
    put(tmp_path, "a.md")
    zone.ripe(0)

    def rename(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        assert zone.take("a.md") is None
    assert below(tmp_path) == {"a.md"}
    assert zone.ripe(0) == ["a.md"]
