"""The version that verdicts name changes with all that decides."""

import ast
from pathlib import Path

import pytest

from services.scanner import judge, ruleset
from services.scanner.ruleset import ENGINE, FOLDER, load

PACKAGE = FOLDER.parent


def imported(file: Path) -> set[str]:
    """Modules of this package that a module imports."""
    nodes = (
        n for n in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(n, ast.ImportFrom)
    )
    names = (n.module or "" for n in nodes)
    return {n.removeprefix("services.scanner.") for n in names if n.startswith("services.scanner.")}


def test_all_code_that_the_judge_runs_is_in_the_version() -> None:
    found, ahead = set[str](), ["judge"]
    while ahead:
        name = ahead.pop()
        if name not in found and "." not in name:
            found.add(name)
            ahead += imported(PACKAGE / f"{name}.py")
    told = {name.removesuffix(".py") for name in ENGINE}
    assert found - {"settings"} <= told
    assert judge.__file__ is not None


def test_every_file_of_the_version_is_there() -> None:
    assert all((PACKAGE / name).is_file() for name in ENGINE)


def test_the_version_changes_with_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = load(FOLDER).version
    for name in ENGINE:
        (tmp_path / name).write_bytes((PACKAGE / name).read_bytes())
    (tmp_path / "learned").symlink_to(PACKAGE / "learned")
    monkeypatch.setattr(ruleset, "__file__", str(tmp_path / "ruleset.py"))
    assert load(FOLDER).version == before
    (tmp_path / "matching.py").write_text("WINDOW = 1")
    assert load(FOLDER).version != before
