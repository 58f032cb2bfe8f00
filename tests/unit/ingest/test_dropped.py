"""Files that the drop-zone put away go with the document."""

import hashlib
from pathlib import Path

import pytest

from kernel.errors import Retry
from services.ingest.dropped import Dropped

DATA = b"# A text\n"
NAME = hashlib.sha256(DATA).hexdigest()
OTHER = b"# B text\n"


def put(root: Path, path: str, data: bytes = DATA) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def below(root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in root.rglob("*")}


def test_every_file_with_the_bytes_goes_with_its_note_and_its_folder(tmp_path: Path) -> None:
    put(tmp_path, "done/law/deep/a.md")
    put(tmp_path, "failed/b.md")
    put(tmp_path, "failed/b.md.error.txt", b"code: cancelled\nfile: b.md\n")
    put(tmp_path, "done/c.md", OTHER)
    put(tmp_path, "failed/longer.md", DATA + b"x")
    assert Dropped(tmp_path).forget(NAME, {len(DATA)}) == 2
    assert below(tmp_path) == {"done", "done/c.md", "failed", "failed/longer.md"}
    assert Dropped(tmp_path).forget(NAME, {len(DATA)}) == 0


def test_the_note_of_a_blocked_file_goes_by_the_hash_in_it(tmp_path: Path) -> None:
    put(tmp_path, "failed/bad.md.error.txt", f"code: blocked\nsha256: {NAME}\nkept: no\n".encode())
    put(tmp_path, "failed/worse.md.error.txt", b"code: blocked\nsha256: " + b"0" * 64 + b"\n")
    assert Dropped(tmp_path).forget(NAME, {len(DATA)}, notes=False) == 0
    assert (tmp_path / "failed/bad.md.error.txt").exists()
    Dropped(tmp_path).forget(NAME, {len(DATA)})
    assert below(tmp_path) == {"failed", "failed/worse.md.error.txt"}


def test_of_bytes_that_others_have_only_the_own_file_goes(tmp_path: Path) -> None:
    put(tmp_path, "done/mine/a.md")
    put(tmp_path, "done/theirs/a.md")
    gone = Dropped(tmp_path).forget(NAME, {len(DATA)}, {"mine/a.md"}, shared=True)
    assert (gone, (tmp_path / "done/theirs/a.md").exists()) == (1, True)
    assert not (tmp_path / "done/mine/a.md").exists()


def test_a_folder_that_waits_for_files_goes_when_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "law/secret").mkdir(parents=True)
    put(tmp_path, "law/full/x.md", OTHER)
    Dropped(tmp_path).forget(NAME, {9}, {"law/secret/a.md", "law/full/a.md", "top.md"})
    assert below(tmp_path) == {"law", "law/full", "law/full/x.md"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside/a.md")
    (tmp_path / "zone/done").mkdir(parents=True)
    (tmp_path / "zone/done/a.md").symlink_to(outside)
    (tmp_path / "zone/done/folder").symlink_to(outside.parent)
    assert Dropped(tmp_path / "zone").forget(NAME, {len(DATA)}) == 0
    assert outside.exists()


def test_a_file_that_cannot_be_deleted_now_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "done/a.md")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(Retry, match="Permission denied"):
        Dropped(tmp_path).forget(NAME, {len(DATA)})
