"""`kb lang`: rows in, languages out, without a stack."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import lang
from cli.main import main

SERBIAN = "Komisija će svoj izveštaj objaviti pre kraja meseca i pozvati građane na raspravu."
CZECH = "Výbor zveřejní svou zprávu před koncem měsíce a vyzve občany k diskusi."


def _run(*words: str) -> int:
    try:
        main(["lang", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _answers(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def _rows(path: Path, *rows: str | bytes) -> str:
    path.write_bytes(b"\n".join(r if isinstance(r, bytes) else r.encode() for r in rows))
    return str(path)


def test_each_row_has_its_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [SERBIAN, CZECH, "Немам појма шта да радим.", "123"]
    rows = [json.dumps({"text": text}) for text in texts]
    assert _run("--jsonl", _rows(tmp_path / "rows.jsonl", *rows)) == 0
    found = _answers(capsys.readouterr().out)
    assert [(row["i"], row["lang"], row["script"]) for row in found] == [
        (0, "sr", "Latn"),
        (1, "cs", "Latn"),
        (2, "sr", "Cyrl"),
        (3, "unknown", "Zyyy"),
    ]
    assert found[0]["shares"] == {"sr": 1.0}


def test_bad_rows_are_named_and_the_others_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad: list[str | bytes] = [
        "{",
        "[]",
        '{"text": 5}',
        '{"words": "a"}',
        b'{"text": "\xff"}',
        "[" * 100_000,
    ]
    good = json.dumps({"text": SERBIAN})
    assert _run("--jsonl", _rows(tmp_path / "rows.jsonl", good, *bad, "", good)) == 2
    done = capsys.readouterr()
    assert [row["i"] for row in _answers(done.out)] == [0, 7]
    errors = done.err.splitlines()
    assert len(errors) == len(bad)
    assert [error.split("line ")[1].split(":")[0] for error in errors] == list("234567")


def test_rows_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = io.TextIOWrapper(io.BytesIO(json.dumps({"text": CZECH}).encode()))
    monkeypatch.setattr(sys, "stdin", rows)
    assert _run("--jsonl", "-") == 0
    assert _answers(capsys.readouterr().out)[0]["lang"] == "cs"


def test_a_row_is_answered_before_the_next_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Lines(io.BytesIO):
        def __next__(self) -> bytes:
            seen.append(len(capsys.readouterr().out.splitlines()))
            return super().__next__()

    rows = Lines((json.dumps({"text": CZECH}) + "\n").encode() * 3)
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": rows})())
    assert lang.rows("-")
    assert seen == [0, 1, 1, 1]


def test_files_are_told_in_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(SERBIAN)
    assert _run(str(tmp_path / "a.txt")) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.txt'}: sr Latn [sr 100%]\n"
    assert _run("--json", str(tmp_path / "a.txt")) == 0
    assert json.loads(capsys.readouterr().out)["lang"] == "sr"


def test_a_missing_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--jsonl", str(tmp_path / "none")) == 1
    assert "No such file" in capsys.readouterr().err
    assert _run() == 1
    assert "--jsonl" in capsys.readouterr().err
