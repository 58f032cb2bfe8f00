"""The data folder: secrets, logs."""

from pathlib import Path

from cli.datadir import DataDir


def _dir(tmp_path: Path) -> DataDir:
    data = DataDir(tmp_path / "data")
    data.prepare()
    return data


def test_secrets_are_made_once(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    data.ensure_secrets({})
    first = data.env_file.read_text()
    data.ensure_secrets({})
    assert data.env_file.read_text() == first
    assert len({*data.settings({}).values()}) == len(data.settings({})) > 10


def test_a_secret_of_the_environment_is_not_written_down(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    data.ensure_secrets({"KB_API_KEY": "given"})
    assert "KB_API_KEY" not in data.env_file.read_text()
    assert data.settings({"KB_API_KEY": "given"})["KB_API_KEY"] == "given"


def test_the_env_file_is_readable_by_its_owner_only_and_keeps_foreign_lines(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    data.env_file.write_text("# note\nKB_EMBEDDER='a b'")
    data.env_file.chmod(0o644)
    data.ensure_secrets({})
    assert data.env_file.read_text().startswith("# note\nKB_EMBEDDER='a b'\nKB_API_KEY=")
    assert data.env_file.stat().st_mode & 0o777 == 0o600
    assert data.settings({})["KB_EMBEDDER"] == "a b"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    data.remember({"KB_EMBEDDER": "bundled"})
    assert data.settings({"KB_EMBEDDER": "hashed"})["KB_EMBEDDER"] == "hashed"
    assert data.settings({"KB_EMBEDDER": ""})["KB_EMBEDDER"] == "bundled"


def test_big_logs_are_set_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    for n in range(5):
        file = data.log_file("x")
        assert file.stat().st_size == 0
        with file.open("w") as big:
            big.write(str(n))
            big.truncate(11 * 1024 * 1024)
    data.log_file("x")
    kept = {f.name: f.open().read(1) for f in data.logs.iterdir()}
    assert kept == {"x.log": "", "x.log.1": "4", "x.log.2": "3", "x.log.3": "2"}


def test_a_small_log_goes_on(tmp_path: Path) -> None:
    data = _dir(tmp_path)
    data.log_file("x").write_text("before")
    assert data.log_file("x").read_text() == "before"
