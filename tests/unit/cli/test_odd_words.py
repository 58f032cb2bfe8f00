"""Arguments that no file system and no server likes: one line, no traceback."""

import os
from pathlib import Path

import pytest

from cli.main import main

ODD = os.fsdecode(b"\xff")


def line_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_a_data_folder_that_is_a_file_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert line_of(["up", "--detach", "--data", str(file)], capsys).startswith("error: ")


def test_a_word_that_is_not_utf8_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("KB_API_KEY", "k")
    for words in (["query", ODD], ["doc", "show", ODD]):
        line = line_of([*words, "--data", str(tmp_path)], capsys)
        assert line == "error: an argument is not valid UTF-8"


@pytest.mark.parametrize("moment", ["2025-13-01", "gestern", "2025-01-01T10:00:00", ""])
def test_a_moment_that_is_none_is_told_before_a_file_is_looked_at(
    moment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ingest", str(tmp_path / "absent.md"), "--valid-from", moment]
    line = line_of([*words, "--data", str(tmp_path)], capsys)
    assert line.startswith("error: --valid-from is no day and no instant with zone")
