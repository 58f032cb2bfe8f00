"""What backup, restore, export and import do before they touch a store."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.backup import shareable
from cli.datadir import DataDir
from cli.importing import _ask
from cli.main import main
from cli.restore import _claim, _unclaim
from kernel.errors import Refusal
from kernel.repository import Repository


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_a_backup_holds_settings_and_no_secret() -> None:
    kept, left_out = shareable(
        {
            "KB_EMBEDDER": "hashed", "KB_LOG_LEVEL": "DEBUG", "KB_AI_KEY": "k",
            "KB_QDRANT_URL": "http://u:p@h", "KB_BLOBS": "s3://b", "AWS_ACCESS_KEY_ID": "a",
            "KB_API_KEY": "x", "KB_DB_PASSWORD_UI": "x", "KB_OWNER_PASSWORD": "x",
            "KB_DOOR_KEY_INGEST": "x", "KB_BUS_PASSWORD_ADMIN": "x", "KB_ADMIN_CREATED": "1",
            "HF_TOKEN": "t", "KB_POSTGRES_URL": "postgresql://h",
        }
    )  # fmt: skip
    assert kept == {"KB_EMBEDDER": "hashed", "KB_LOG_LEVEL": "DEBUG"}
    assert left_out == [
        "AWS_ACCESS_KEY_ID", "HF_TOKEN", "KB_AI_KEY", "KB_BLOBS", "KB_POSTGRES_URL",
        "KB_QDRANT_URL",
    ]  # fmt: skip


def test_a_restore_takes_a_new_folder_and_no_other(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "new")
    _claim(data)
    (data.root / "postgres").mkdir()
    _claim(data)  # the one before was killed
    assert not (data.root / "postgres").exists()
    _unclaim(data)
    (data.root / ".env").write_text("KB_EMBEDDER=hashed\n")
    _claim(data)
    assert (data.root / ".env").read_text() == "KB_EMBEDDER=hashed\n"


def test_a_folder_in_use_is_never_emptied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backups = Repository(tmp_path / "backups")
    backups.create()
    (tmp_path / "data" / "blobs").mkdir(parents=True)
    (tmp_path / "data" / "blobs" / "x").write_text("x")
    assert run("restore", str(backups.root), "--data", str(tmp_path / "data")) == 1
    assert (tmp_path / "data" / "blobs" / "x").read_text() == "x"
    assert "there is no backup" in capsys.readouterr().err


def test_a_folder_that_is_no_backup_is_told_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("backup", str(tmp_path / "none"), "--list", "--json") == 1
    assert json.loads(capsys.readouterr().out)["type"] == "no-backups"
    assert run("backup", str(tmp_path), "--verify") == 1
    assert run("restore", str(tmp_path / "none"), "--data", str(tmp_path / "new")) == 1
    assert not (tmp_path / "new").exists()


def test_without_an_installation_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ("--data", str(tmp_path / "data"))
    assert run("backup", str(tmp_path / "backups"), *data) == 1
    assert run("export", "default", str(tmp_path / "x.kb"), *data) == 1
    assert run("mirror", str(tmp_path / "git"), *data) == 1
    assert capsys.readouterr().err.count("there is no installation") == 3
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("export", "default"),
        ("export", "default", "x.kb", "--folder", "out"),
        ("export", "default", "x.kb", "--as-of", "2025-01-01"),
        ("export", "default", "--folder", "out", "--as-of", "someday"),
        ("export", "default", "--folder", "out", "--as-of", "2025-01-01", "--include-historical"),
        ("backup", "b", "--at", "2025-01-01"),
    ],
)
def test_options_that_do_not_go_together_are_told(words: tuple[str, ...], tmp_path: Path) -> None:
    assert run(*words, "--data", str(tmp_path)) == 1


def test_a_file_that_is_no_bundle_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.kb").write_bytes(b"no zip")
    assert run("import", str(tmp_path / "x.kb"), "--data", str(tmp_path / "d"), "--json") == 1
    assert json.loads(capsys.readouterr().out)["type"] == "no-bundle"
    assert run("import", str(tmp_path / "none.kb"), "--data", str(tmp_path / "d")) == 1
    assert run("import", str(tmp_path / "x.kb"), "--trust", "me", "--data", str(tmp_path)) == 1


def test_nobody_is_believed_while_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        def isatty(self) -> bool:
            return False

    pipe: Any = Pipe()
    monkeypatch.setattr("sys.stdin", pipe)
    with pytest.raises(Refusal, match="--trust KEY"):
        _ask("KEY", Path("x.kb"))
