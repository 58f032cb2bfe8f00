"""The folder that documents are parsed in: the one that was named, or none."""

from pathlib import Path

import pytest

from kernel.errors import Retry
from services.converter.process import _given, _Home
from services.converter.temporary import (
    NoTemporaryFolder,
    require_temporary_folder,
    temporary_folder,
)


def test_a_child_lives_in_the_folder_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    home = _Home()
    assert Path(home.name).parent == tmp_path == temporary_folder()
    home.cleanup()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_fails_is_never_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(Retry, match=f"No such file.*{tmp_path}/gone"), _given():
        _Home()


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_start_without_a_folder_to_parse_in_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    with pytest.raises(NoTemporaryFolder, match="set TMPDIR"):
        require_temporary_folder()
