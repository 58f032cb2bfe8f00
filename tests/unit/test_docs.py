"""What the documents say is so: commands exist, links lead somewhere, tables equal the code."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
import pypdfium2
import pytest
import typer.main
from typer.testing import CliRunner

from cli.main import app
from contracts.flow import table as flow_table
from contracts.states import table as states_table
from docs import make_examples, make_settings
from kernel.language import ACCEPTED, detect
from kernel.media import SUPPORTED, sniff
from services.ingest.domain import stated_valid_from

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS += sorted((ROOT / "contracts").glob("*.md")) + sorted((ROOT / "eval").glob("*.md"))
PAGES = {p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in DOCUMENTS}
EXAMPLES = sorted((ROOT / "docs" / "examples").iterdir())


def code(text: str) -> list[str]:
    """Lines of the fenced blocks of shell, without comments."""
    blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```", text, re.M | re.S)
    lines = [re.sub(r"\s#.*", "", line).strip() for b in blocks for line in b.splitlines()]
    return [line for line in lines if line]


# -- README ----------------------------------------------------------------------------------------


def test_readme_fits_ten_minutes() -> None:
    assert 40 < README.count("\n") <= 140


def test_readme_begins_with_the_two_commands() -> None:
    assert [line.split()[:2] for line in code(README)[:2]] == [["make", "run"], ["make", "test"]]


def test_the_first_screen_is_the_one_that_was_promised() -> None:
    assert {
        ".venv/bin/kb ingest docs/examples/*",
        '.venv/bin/kb query "maximum fine for a data breach" --top-k 5 --as-of 2025-12-30',
    } <= set(code(README))


def test_readme_has_the_flow_table_of_the_code() -> None:
    assert flow_table() in README


def test_the_states_of_a_job_are_those_of_the_code() -> None:
    assert states_table() in PAGES["docs/jobs.md"]


def folders() -> set[str]:
    """Top-level folders of the repository that a person looks into."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        names = {path.partition("/")[0] for path in listed.stdout.split("\0") if "/" in path}
    else:
        names = {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    return {n for n in names if not n.startswith(".")}


def test_readme_names_every_folder_and_no_other() -> None:
    assert set(re.findall(r"^\| `(\w+)/` \|", README, re.M)) == folders()


# -- links -----------------------------------------------------------------------------------------


def dead_links(text: str, folder: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [t.partition("#")[0] for t in targets if not re.match(r"[a-z]+:|#", t)]
    return [t for t in local if not (folder / t).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    assert dead_links(PAGES[page], (ROOT / page).parent) == []


def test_the_link_rule_bites() -> None:
    assert dead_links("[a](docs/none.md) [b](README.md#x) [c](https://x.example)", ROOT) == [
        "docs/none.md"
    ]


def missing_paths(text: str) -> list[str]:
    """Paths in backticks below a folder of ours that are not there."""
    paths = re.findall(
        r"`((?:contracts|kernel|services|cli|eval|tests|deploy|docs)/[^`\s<>*{…]*)`", text
    )
    return [p for p in paths if not (ROOT / p).exists() and p != "deploy/.env"]


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_the_text_exist(page: str) -> None:
    assert missing_paths(PAGES[page]) == []


def test_the_path_rule_bites() -> None:
    assert missing_paths("see `kernel/none.py` and `kernel/log.py`") == ["kernel/none.py"]


# -- commands --------------------------------------------------------------------------------------


def subcommands(command: Any) -> dict[str, Any]:
    """By name; empty for a command without any."""
    return getattr(command, "commands", {})


def wrong_command(words: list[str]) -> str | None:
    """What is wrong with the words after `kb`: no such command, or none of its options."""
    command: Any = typer.main.get_command(app)
    while words and not words[0].startswith("-") and (below := subcommands(command)):
        name, *words = words
        if name not in below:
            return f"no command {name}"
        command = below[name]
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
    strange = [w for w in words if w.startswith("-") and w.partition("=")[0] not in known]
    return f"no option {', '.join(strange)}" if strange else None


def kb_commands(text: str) -> Iterator[list[str]]:
    """The words after `kb` in shell blocks and in backticks."""
    for line in [*code(text), *re.findall(r"`(kb [^`]+)`", text)]:
        words = [w for w in shlex.split(line) if w not in {"|", "&"}]
        if words and Path(words[0]).name == "kb":
            yield [w for w in words[1:] if not w.isupper() and w != "…"]


def make_targets(text: str) -> set[str]:
    lines = [*code(text), *re.findall(r"`(make [^`]+)`", text)]
    return {
        w[1] for w in map(str.split, lines) if w[0] == "make" and len(w) > 1 and "=" not in w[1]
    }


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_documents_exist(page: str) -> None:
    wrong = [
        f"kb {' '.join(w)}: {why}" for w in kb_commands(PAGES[page]) if (why := wrong_command(w))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_in_the_documents_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert make_targets(PAGES[page]) <= set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_readme_shows_commands_at_all() -> None:
    assert len(list(kb_commands(README))) > 4 and len(make_targets(README)) > 3


@pytest.mark.parametrize("line", ["kb inggest x", "kb query x --topk 5", "kb doc vanish ID"])
def test_the_command_rule_bites(line: str) -> None:
    (words,) = kb_commands(f"```bash\n{line}\n```")
    assert wrong_command(words)


def test_every_command_explains_itself() -> None:
    commands = subcommands(typer.main.get_command(app))
    shown = CliRunner().invoke(app, ["--help"]).output
    assert len(commands) > 8
    assert [n for n, c in commands.items() if n not in shown or not c.help] == []


# -- changelog and operations ----------------------------------------------------------------------


def test_the_changelog_has_what_comes_next() -> None:
    assert "## [Unreleased]" in PAGES["CHANGELOG.md"]


def test_the_table_of_settings_is_that_of_the_code() -> None:
    page = PAGES["docs/operations.md"]
    assert make_settings.page(page) == page, "run: python -m docs.make_settings"


def test_every_setting_is_explained() -> None:
    assert [n for n, f in make_settings.settings().items() if not f.description] == []


def test_kb_up_hands_every_setting_to_who_reads_it() -> None:
    own = {"KB_HOST"}  # only a container listens beyond loopback
    assert {n for n in make_settings.settings() if not make_settings.readers(n)} == own


# -- examples --------------------------------------------------------------------------------------


def text_of(file: Path) -> str:
    match file.suffix:
        case ".pdf":
            pages = pypdfium2.PdfDocument(file)
            return "\n".join(p.get_textpage().get_text_range() for p in pages)
        case ".docx":
            document = docx.Document(str(file))
            cells = [c.text for t in document.tables for row in t.rows for c in row.cells]
            return "\n".join([*(p.text for p in document.paragraphs), *cells])
        case ".html":
            return re.sub(r"<[^>]+>", " ", file.read_text("utf-8"))
        case _:
            return file.read_text("utf-8")


def test_examples_cover_languages_and_formats() -> None:
    languages = {detect(text_of(f)).code for f in EXAMPLES}
    assert languages == ACCEPTED
    assert {f.suffix for f in EXAMPLES} == {".md", ".txt", ".html", ".docx", ".pdf"}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.name)
def test_an_example_can_be_taken_in(file: Path) -> None:
    assert sniff(file.read_bytes()[:65536], file.name) in SUPPORTED
    assert len(text_of(file)) > 2000
    assert file.stat().st_size < 100_000


def test_serbian_is_there_in_both_scripts() -> None:
    serbian = [text_of(f) for f in EXAMPLES if detect(text_of(f)).code == "sr"]
    assert {bool(re.search("[а-яђћ]{4}", text)) for text in serbian} == {True, False}


def test_the_policy_was_valid_on_the_day_of_the_first_screen() -> None:
    policy = (ROOT / "docs/examples/data-protection-policy.md").read_bytes()
    since = stated_valid_from(policy, "text/markdown")
    assert since is not None and since.date().isoformat() == "2024-01-01"
    assert b"maximum fine for a data breach" in policy


def squeezed(text: str) -> str:
    return re.sub(r"[\s\u00ad•|#-]+", "", text)


@pytest.mark.parametrize("name", make_examples.FORMATS)
def test_binary_examples_hold_their_source(name: str) -> None:
    made = text_of(ROOT / "docs" / "examples" / f"{name}.{make_examples.FORMATS[name]}")
    source = list(make_examples.blocks((make_examples.SOURCES / f"{name}.md").read_text("utf-8")))
    words = [b.text for b in source if b.text] + [c for b in source for r in b.rows for c in r]
    assert [w for w in words if squeezed(w) not in squeezed(made)] == []


def test_the_maker_of_examples_is_repeatable(tmp_path: Path) -> None:
    if not make_examples.FONTS.is_dir():
        pytest.skip("the fonts DejaVu are not installed: apt-get install fonts-dejavu-core")
    for folder in (one := tmp_path / "1", two := tmp_path / "2"):
        folder.mkdir()
        make_examples.main(folder)
    assert {f.name: f.read_bytes() for f in one.iterdir()} == {
        f.name: f.read_bytes() for f in two.iterdir()
    }
    assert {f.name for f in one.iterdir()} <= {f.name for f in EXAMPLES}
