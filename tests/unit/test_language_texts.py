"""Which text of a repository the language model is trained on, and which is kept out."""

import re
import subprocess
from pathlib import Path

import pytest

from eval import language_texts
from eval.language_texts import Source, running, spoken, written

PROSE = "Gradsko je vijeće prihvatilo prijedlog proračuna za sljedeću godinu i objavilo izvješće."
OTHER = "Djeca su u srijedu poslije podne vidjela bijelu zvijezdu na sjeveru iznad rijeke i mora."
BROKEN = OTHER.replace(" ", "\\n", 1)
TREEBANK = "Ovih osam riječi stoji baš ovako u ispitnoj datoteci banke stabala i nigdje drugdje."


def _clone(folder: Path, repository: str, files: dict[str, str]) -> None:
    place = folder / repository.replace("/", "+")
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, "utf-8")
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "texts"]):
        subprocess.run([*git, *command], check=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("Croatian-SET", "Serbian-SET"):
        files = {"x-ud-test.conllu": f"# text = {TREEBANK}\n1\tOvih\n"}
        _clone(tmp_path, f"UniversalDependencies/UD_{name}", files)
    return tmp_path


def _only(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> None:
    monkeypatch.setattr(language_texts, "TEXTS", sources)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("lines", f"{PROSE}\n{OTHER}\n"),
        ("second", f"The council.\t{PROSE}\tby someone\nChildren.\t{OTHER}\n"),
        ("conllu", f"# text = {PROSE}\n1\tGradsko\n\n# text = {OTHER}\n"),
        ("third", f"id\tkind\ttext\n1\tx\t{PROSE}\n2\ty\t{OTHER}\n"),
        ("law", f'{{\n"title": "Zakon", "content": "{PROSE}\\n\\n{BROKEN}"}}'),
        ("json", f'{{\n"id": "x", "list": [{{"content": "{PROSE}\\n{OTHER}", "url": "a b"}}]}}'),
        ("tei", f"<title>t</title><body><p>{PROSE}</p>\n<p><hi>{OTHER}</hi></p></body>"),
        ("markup", f"---\ntitle: x\n---\n# {PROSE}\n\n```python\nprint('a')\n```\n\n* {OTHER}\n"),
        ("markup", f".. image:: x.png\n   :alt: y\n\n{PROSE}\n\n    kod = 1\n\n{OTHER} `kod`\n"),
    ],
)
def test_each_kind_of_file_gives_its_prose(
    kind: str, raw: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clone(folder, "a/b", {"in/text.x": raw, "out/other.x": "Ovo ne smije biti uzeto ni slučajno."})
    _only(monkeypatch, Source("a/b", "hr", "news", r"in/.*\.x", kind))
    assert running(folder, held=False) == {"hr": {"news:a/b": [PROSE, OTHER]}}


def test_cyrillic_text_is_written_in_latin_letters(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clone(folder, "a/b", {"text.txt": "Деца су у среду после подне видела белу звезду.\n"})
    _only(monkeypatch, Source("a/b", "sr", "news", r"text\.txt", "lines"))
    assert running(folder, held=False)["sr"]["news:a/b"] == [
        "Deca su u sredu posle podne videla belu zvezdu."
    ]


def test_text_in_another_language_and_repeats_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    english = "This paragraph was never translated, as it happens in many translations of manuals."
    _clone(folder, "a/b", {"text.md": f"{PROSE}\n\n{english}\n\n{PROSE}\n"})
    _only(monkeypatch, Source("a/b", "hr", "news", r"text\.md"))
    assert running(folder, held=False)["hr"]["news:a/b"] == [PROSE]


def test_texts_held_apart_are_not_trained_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _clone(folder, "a/b", {"one.txt": PROSE, "two.txt": OTHER})
    _only(
        monkeypatch,
        Source("a/b", "hr", "news", r"one\.txt", "lines"),
        Source("a/b", "hr", "news", r"two\.txt", "lines", held=True),
    )
    assert running(folder, held=False)["hr"]["news:a/b"] == [PROSE]
    assert running(folder, held=True)["hr"]["news:a/b"] == [OTHER]


def test_documents_of_the_treebank_check_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = "clarinsi/babushka-bench"
    _clone(folder, repository, {"text.txt": f"{PROSE}\n{OTHER} {TREEBANK}\n"})
    _only(monkeypatch, Source(repository, "hr", "news", r"text\.txt", "lines"))
    assert running(folder, held=False)["hr"][f"news:{repository}"] == [PROSE]


def test_a_missing_clone_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, Source("nobody/nothing", "hr", "news", r".*"))
    with pytest.raises(FileNotFoundError, match="nobody/nothing"):
        running(folder, held=False)


def test_spoken_words_have_their_share(folder: Path) -> None:
    files = {"content/2018/sr/sr_50k.txt": "да 30\nda 30\ne-mail 7\ngde 40\n"}
    _clone(folder, "hermitdave/FrequencyWords", files)
    assert spoken(folder, "sr") == {"da": 0.6, "gde": 0.4}


def test_written_words_have_their_share_and_names_are_left_out(folder: Path) -> None:
    listed = (
        "Form\tFrequency\n\n# Corpus-Size: 9\n\ndan\t30\nDan\t10\nBeograd\t50\nA1\t7\nnoć\t40\n"
    )
    files = {"data/frequency/sr-Latn.txt": listed, "data/frequency/hr.txt": "tjedan\t5\n"}
    _clone(folder, "unicode-org/unilex", files)
    assert written(folder, "sr") == {"dan": 0.5, "noć": 0.5}
    assert written(folder, "hr") == {"tjedan": 1.0}


def test_no_law_is_trained_on_and_held_apart() -> None:
    laws = [source for source in language_texts.TEXTS if source.genre == "law"]
    for number in range(1000):
        name = f"data/seed/{number:04}-zakon.json"
        taken = [s for s in laws if s.language == "sr" and re.fullmatch(s.files, name)]
        assert len(taken) < 2
    assert {(s.language, s.held) for s in laws} == {(c, h) for c in ("hr", "sr") for h in (0, 1)}


def test_no_source_of_the_check_is_trained_on() -> None:
    trained = [source for source in language_texts.TEXTS if not source.held]
    assert not [s for s in trained if "UniversalDependencies" in s.repository]
    assert not [s for s in trained if "parla" in (s.repository + s.files).lower()]


def test_no_source_forbids_commercial_use_or_states_no_licence() -> None:
    table = language_texts.__doc__ or ""
    for line in table.splitlines():
        assert not (line.startswith("|") and ("-NC" in line or "none" in line))
    for source in language_texts.TEXTS:
        assert source.repository.rpartition("/")[2] in table.partition("| repository")[2]
