"""The comparison with other systems: what a peer is given, what counts, and its environment."""

import json
import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.peers import __main__ as peers
from eval.peers import systems, worker
from eval.retrieval import report
from eval.retrieval.sets import Document, RetrievalSet

DOCUMENTS = (Document("a", "Fish", "They swim."), Document("b", "Kазна", "Десет динара."))
SET = RetrievalSet(
    "made", DOCUMENTS, {"q": "swim", "r": "казна"}, {"q": frozenset("a"), "r": frozenset("b")}
)


def _fake(documents: Sequence[Document], model: Path, depth: int) -> systems.Search:
    """Finds what shares a word, twice each."""

    def search(text: str) -> list[tuple[str, float]]:
        hits = [d.id for d in documents if text.lower() in d.markdown(title=True).lower()]
        return systems._firsts((id_, 1.0) for id_ in [*hits, *hits])

    return search


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(systems.SYSTEMS, "fake", (_fake, "pytest"))
    monkeypatch.setattr(peers, "ensure_bundled", lambda: "/model")


def test_a_peer_is_given_documents_with_titles_and_each_counts_once(
    fake: None, tmp_path: Path
) -> None:
    given, found = tmp_path / "given.json", tmp_path / "found.json"
    rows = [{"id": d.id, "title": d.title, "text": d.text} for d in DOCUMENTS]
    given.write_text(
        json.dumps({"documents": rows, "model": "/model", "queries": {"q": "swim", "r": "fish"}})
    )
    worker.main("fake", str(given), str(found))
    told = json.loads(found.read_text())
    assert told["rankings"] == {"q": [["a", 1.0]], "r": [["a", 1.0]]}
    assert len(told["milliseconds"]) == 2
    assert told["version"] == systems.version("fake")


def test_a_peer_is_a_column_of_the_table(fake: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> None:
        worker.main(*command[3:])

    monkeypatch.setattr(subprocess, "run", run)
    result = peers.peer("fake", SET, Path("python"))
    assert list(result.values["R@1"]) == [1.0, 0.0]  # `Kазна` begins with a Latin letter
    table = "\n".join(report.lines(SET, [result]))
    assert f"fake {systems.version('fake')}" in table


def test_the_environment_is_made_once_and_anew_for_other_requirements(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def create(folder: Path, **_: Any) -> None:
        made.append("venv")
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        base = {"base": str(folder)}
        Path(sysconfig.get_path("purelib", vars=base)).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: made.append(command[1]))
    python = peers.environment(tmp_path / "peers")
    assert python == tmp_path / "peers" / "bin" / "python"
    assert peers.environment(tmp_path / "peers") == python
    assert made == ["venv", "-m"]
    (tmp_path / "peers" / "requirements.txt").write_text("older")
    peers.environment(tmp_path / "peers")
    assert made == ["venv", "-m"] * 2


def test_an_install_that_failed_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def create(folder: Path, **_: Any) -> None:
        base = {"base": str(folder)}
        Path(sysconfig.get_path("purelib", vars=base)).mkdir(parents=True, exist_ok=True)

    def fails(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(subprocess, "run", fails)
    for _ in range(2):
        with pytest.raises(OSError):
            peers.environment(tmp_path / "peers")
