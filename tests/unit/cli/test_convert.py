"""`kb convert`: files become Markdown with front matter and places, whole or not at all."""

import json
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.main import app
from cli.output import CliError
from kernel.errors import Refusal
from services.converter.outcome import BodyOutcome
from tests.documents import eml, markdown, plain, text_of


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["convert", *words])


def put(folder: Path, **files: bytes) -> list[str]:
    paths = []
    for name, data in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_file_becomes_markdown_with_front_matter_and_places(tmp_path: Path) -> None:
    (path,) = put(tmp_path, handbook_md=markdown())
    out = tmp_path / "out"
    result = run(path, "--out", str(out))
    assert result.exit_code == 0, result.output
    _, front, body = (out / "handbook.md").read_text().split("---\n", 2)
    told = yaml.safe_load(front)
    assert (told["title"], told["language"], told["source"]) == (
        "Handbook of Fines", "en", "handbook.md",
    )  # fmt: skip
    assert told["parser"].startswith("markdown-")
    places = json.loads((out / "handbook.spans.json").read_text())
    data = body.lstrip("\n").encode()
    texts = {
        data[s["byte_start"] : s["byte_end"]].decode(): s["place"]["lines"] for s in places["spans"]
    }
    assert texts[text_of("md")] == [5, 5]


def test_files_of_one_stem_keep_their_endings(tmp_path: Path) -> None:
    paths = put(tmp_path, a_md=markdown(), a_txt=plain(), b_txt=plain())
    result = run(*paths, "--out", str(tmp_path / "out"), "--json")
    names = [Path(row["out"]).name for row in rows(result)]
    assert names == ["a.md.md", "a.txt.md", "b.md"]


def test_files_of_one_name_from_two_folders_do_not_overwrite_each_other(tmp_path: Path) -> None:
    paths = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        paths += put(tmp_path / folder, a_txt=f"{folder} ".encode() + plain())
    paths += put(tmp_path, a_md=markdown())
    (tmp_path / "a.txt.log").write_bytes(b"log " + plain())
    out = tmp_path / "out"
    result = run(*paths, str(tmp_path / "a.txt.log"), "--out", str(out), "--json")
    names = [Path(row["out"]).name for row in rows(result)]
    assert names == ["a.txt.md", "a.txt-2.md", "a.md.md", "a.txt-3.md"]
    starts = {name: (out / name).read_text().split("---\n", 2)[2].split()[0] for name in names}
    assert (starts["a.txt.md"], starts["a.txt-2.md"], starts["a.txt-3.md"]) == ("x", "y", "log")


def test_a_folder_is_converted_with_its_folders(tmp_path: Path) -> None:
    (tmp_path / "in" / "под").mkdir(parents=True)
    put(tmp_path / "in" / "под", закон_txt=plain())
    assert run(str(tmp_path / "in"), "--out", str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out" / "под" / "закон.md").exists()


def test_one_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    paths = put(tmp_path, bad_docx=b"PK\x03\x04 no zip", empty_txt=b"", good_txt=plain())
    result = run(*paths, "--out", str(tmp_path / "out"), "--json")
    assert result.exit_code == 1
    found = {Path(row["file"]).name: (row["ok"], row["code"]) for row in rows(result)}
    assert found["good.txt"] == (True, None)
    assert found["empty.txt"] == (False, "empty-document")
    assert not found["bad.docx"][0]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["good.md", "good.spans.json"]


def test_what_was_refused_is_named_at_the_end(tmp_path: Path) -> None:
    paths = put(tmp_path, bad_docx=b"PK\x03\x04 no zip", empty_txt=b"", good_txt=plain())
    result = run(*paths, "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    said = result.stderr.splitlines()
    start = said.index("2 of 3 files were not converted:")
    assert [line.split(": ", 1)[0].strip() for line in said[start + 1 :]] == paths[:2]
    assert said[-1].endswith("the file is empty (empty-document)")


def test_nothing_to_convert_is_an_error_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run(str(tmp_path / "empty"), "--out", str(tmp_path / "out"))
    assert result.exit_code != 0
    assert isinstance(result.exception, CliError)
    assert "no file in" in result.exception.line()


def test_a_refusal_that_shows_late_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object) -> Iterator[bytes]:
        yield b"half of the body"
        raise Refusal("parse-crash", "the parser's answer makes no sense")

    monkeypatch.setattr(BodyOutcome, "to_bytes", broken)
    (path,) = put(tmp_path, a_txt=plain())
    (row,) = rows(run(path, "--out", str(tmp_path / "out"), "--json"))
    assert (row["ok"], row["code"]) == (False, "parse-crash")
    assert not list((tmp_path / "out").iterdir())


def test_a_language_that_an_ingest_refuses_is_refused_unless_told(tmp_path: Path) -> None:
    polish = "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi do dyskusji. " * 5
    (path,) = put(tmp_path, raport_txt=polish.encode())
    (row,) = rows(run(path, "--out", str(tmp_path), "--json"))
    assert row["code"] == "language-not-accepted"
    (row,) = rows(run(path, "--out", str(tmp_path), "--json", "--any-language"))
    assert (row["ok"], next(iter(row["shares"]))) == (True, "pl")


def test_a_single_file_goes_to_standard_output(tmp_path: Path) -> None:
    (path,) = put(tmp_path, a_md=markdown())
    result = run(path)
    assert result.stdout.startswith("---\ntitle: Handbook of Fines\n")
    assert result.stdout.rstrip().endswith("within one month.")


def test_several_files_need_a_folder(tmp_path: Path) -> None:
    paths = put(tmp_path, a_md=markdown(), b_md=markdown())
    assert run(*paths).exit_code != 0
    assert run(str(tmp_path / "none.pdf"), "--out", str(tmp_path)).exit_code != 0


def test_a_lying_name_is_told(tmp_path: Path) -> None:
    (path,) = put(tmp_path, report_pdf=plain())
    (row,) = rows(run(path, "--out", str(tmp_path), "--json"))
    assert row["warnings"][0] == "the name says PDF, the content is plain text"


def test_attachments_are_converted_beside_their_mail(tmp_path: Path) -> None:
    inner = EmailMessage()
    inner["Subject"], inner["From"], inner["Message-ID"] = "inner", "a@b.c", "<x@y>"
    inner.set_content(text_of("inner"))
    inner.add_attachment(b"no picture", maintype="image", subtype="png", filename="../x.png")
    outer = EmailMessage()
    outer["Subject"], outer["From"], outer["Message-ID"] = "outer", "a@b.c", "<z@y>"
    outer.set_content(text_of("outer"))
    outer.add_attachment(inner)
    (path,) = put(tmp_path, mail_eml=outer.as_bytes())
    (row,) = rows(run(path, "--out", str(tmp_path / "out"), "--json"))
    (first,) = row["attachments"]
    assert Path(first["out"]) == tmp_path / "out" / "mail.attachments" / "inner.eml.md"
    (second,) = first["attachments"]
    assert (second["ok"], Path(second["file"]).name) == (True, "_x.png")
    assert "the name says PNG" in second["warnings"][0]
    assert not list(tmp_path.glob("x.png"))


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    (path,) = put(tmp_path, mail_eml=eml())
    for folder in ("one", "two"):
        assert run(path, "--out", str(tmp_path / folder)).exit_code == 0
    one, two = (sorted((tmp_path / f).rglob("*.*")) for f in ("one", "two"))
    assert [p.read_bytes() for p in one if p.is_file()] == [
        p.read_bytes() for p in two if p.is_file()
    ]


@pytest.mark.parametrize("name", ["a.md", "---.txt"])
def test_names_are_no_markup(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(plain())
    (row,) = rows(run(str(tmp_path / name), "--out", str(tmp_path / "out"), "--json"))
    _, front, _ = Path(row["out"]).read_text().split("---\n", 2)
    assert yaml.safe_load(front)["source"] == name


def test_attachments_keep_their_names_when_converted_again_and_overwrite_no_other(
    tmp_path: Path,
) -> None:
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Message-ID"] = "a@b.example", "Files", "<1@b.example>"
    mail.set_content(plain().decode())
    for name, word in (("a.txt.md", "first"), ("a.txt", "second"), ("a.txt", "third")):
        mail.add_attachment(
            f"{word} ".encode() + plain(), maintype="text", subtype="plain", filename=name
        )
    (path,) = put(tmp_path, mail_eml=mail.as_bytes())
    out = tmp_path / "out"
    for _ in range(2):
        assert run(path, "--out", str(out), "--json").exit_code == 0
        files = {p.name: p for p in (out / "mail.attachments").iterdir()}
        sources = {"a.txt.md": "first", "2-a.txt": "second", "3-a.txt": "third"}
        places = {f"{name}.spans.json" for name in sources}
        assert set(files) == {*sources, *(f"{name}.md" for name in sources), *places}
        assert {name: files[name].read_text().split()[0] for name in sources} == sources


def test_a_setting_that_cannot_be_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_CONVERTER_MEMORY_MIB", "1")
    (tmp_path / "a.md").write_text("# Title\n")
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "a.md")])
    assert isinstance(result.exception, CliError)
    assert "KB_CONVERTER_MEMORY_MIB" in result.exception.line()
