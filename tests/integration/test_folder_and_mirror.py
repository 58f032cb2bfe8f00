"""A project as plain folders and as a git repository: what is shown, named, and never kept."""

import json
import subprocess
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.folder import LISTING, Written, write_folder
from cli.mirroring import Mirror, Mirrored
from cli.shelf import distinct, safe_stem
from kernel.errors import Refusal
from tests.integration.small_base import Installation, SmallBase, day


@pytest.fixture
async def here(database: str, tmp_path: Path) -> Installation:
    return Installation(database, tmp_path / "blobs")


@pytest.fixture
async def base(here: Installation) -> AsyncIterator[SmallBase]:
    yield await here.open()
    await here.close()


async def folder_of(here: Installation, folder: Path, **more: Any) -> Written:
    return await write_folder(here.dsn, here.blobs, "default", folder, **more)


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != LISTING)


async def test_a_folder_has_the_text_with_front_matter_and_the_original(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    added = await base.add("О правах", source="k", valid_from=day(1), name="Закон о правах.md")
    await base.add("чужой", project="other")
    written = await folder_of(here, tmp_path / "out")
    assert (written.documents, written.versions) == (1, 1)
    assert files(tmp_path / "out") == ["Закон о правах.md", "Закон о правах.original.md"]
    _, front, body = (tmp_path / "out" / "Закон о правах.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["version_id"] == added.version_id
    assert (fields["source"], fields["valid_from"]) == ("k", "2025-01-01T00:00:00+00:00")
    assert "О правах" in body
    original = (tmp_path / "out" / fields["original"]).read_bytes()
    assert original == await here.blobs.get(added.source_id)


async def test_a_folder_shows_the_day_that_was_asked_for_or_all(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    for n in (1, 5, 9):
        await base.add(f"текст {n}", source="k", valid_from=day(n), name="з.md")
    await folder_of(here, tmp_path / "then", as_of=day(6))
    assert "текст 5" in (tmp_path / "then" / "з.md").read_text()
    assert (
        await folder_of(here, tmp_path / "before", as_of=day(1).replace(year=2020))
    ).versions == 0
    await folder_of(here, tmp_path / "all", historical=True)
    names = [n for n in files(tmp_path / "all") if "original" not in n]
    assert names == ["з@2025-01-01.md", "з@2025-01-05.md", "з@2025-01-09.md"]
    rows = [json.loads(x) for x in (tmp_path / "all" / LISTING).read_text().splitlines()]
    assert [r["valid_until"] is None for r in rows] == [False, False, True]


async def test_two_versions_of_one_day_are_two_files(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    for n in (1, 2):
        await base.add(f"текст {n}", source="k", valid_from=day(1), name="з.md")
    await folder_of(here, tmp_path / "all", historical=True)
    texts = [(tmp_path / "all" / n).read_text() for n in files(tmp_path / "all")]
    assert sum("текст 1" in t for t in texts) == sum("текст 2" in t for t in texts) == 2


async def test_names_that_differ_only_in_case_are_two_files_everywhere(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    await base.add("a", source="1", name="Устав.md")
    await base.add("b", source="2", name="УСТАВ.md")
    await folder_of(here, tmp_path / "out")
    assert len({n.casefold() for n in files(tmp_path / "out")}) == 4


async def test_a_folder_that_is_there_is_left_alone(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    await base.add("a")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(Refusal) as refused:
        await folder_of(here, tmp_path / "out")
    assert refused.value.code == "not-empty"
    assert files(tmp_path / "out") == ["mine.txt"]


async def test_a_text_that_is_lost_leaves_no_half_folder(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    added = await base.add("a")
    await base.blobs.delete(added.source_id)
    with pytest.raises(Refusal) as refused:
        await folder_of(here, tmp_path / "out")
    assert refused.value.code == "missing-blobs"
    assert not [p for p in tmp_path.iterdir() if "out" in p.name]


async def test_what_was_erased_is_in_no_folder(
    here: Installation, base: SmallBase, tmp_path: Path
) -> None:
    gone = await base.add("секрет", source="k", valid_from=day(1))
    await base.add("новый", source="k", valid_from=day(2))
    await base.erase(gone)
    await folder_of(here, tmp_path / "out", historical=True)
    assert not [p for p in (tmp_path / "out").iterdir() if "секрет" in p.read_text()]


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Закон.md", "Закон"),
        ("a/b\\c:d*.txt", "b_c_d_"),
        ("CON.txt", "_CON"),
        ("nul", "_nul"),
        ("com1.tar.gz", "_com1.tar"),
        (" . ", "_"),
        ("-rf.md", "_-rf"),
        ("имя. .md", "имя"),
        ("a\u202eb\n.md", "a_b_"),
        ("й.md", "й"),
        ("ж" * 300 + ".md", "ж" * 60),
    ],
)
def test_a_name_is_one_on_every_system(name: str, stem: str) -> None:
    assert safe_stem(name) == stem


def test_only_names_that_are_the_same_somewhere_get_a_part_of_their_id() -> None:
    named = distinct([("a" * 32, "Й"), ("b" * 32, "й"), ("c" * 32, "к")])
    assert named == {"a" * 32: "Й-aaaaaaaa", "b" * 32: "й-bbbbbbbb", "c" * 32: "к"}


# -- the git mirror -----------------------------------------------------------------------------


async def kept(base: SmallBase, root: Path, **more: Any) -> Mirrored:
    return await Mirror(root, base.log, base.blobs, lambda _: None).keep(**more)


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def told(root: Path, text: str) -> list[Path]:
    """Files of the repository that hold a text, packed or not."""
    found = []
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            try:
                data += zlib.decompress(data)
            except zlib.error:
                pass
            if text.encode() in data:
                found.append(path)
    return found


async def test_each_version_is_a_commit_at_the_time_it_was_recorded(
    base: SmallBase, tmp_path: Path
) -> None:
    root = tmp_path / "git"
    await base.add("первый", source="k", valid_from=day(1), name="Закон.md")
    await base.add("второй", source="k", valid_from=day(2), name="Закон.md")
    done = await kept(base, root)
    assert (done.commits, done.files) == (2, 1)
    subjects = git(root, "log", "--reverse", "--format=%s").splitlines()
    assert subjects == ["Add Закон.md", "Supersede Закон.md"]
    times = [datetime.fromtimestamp(int(t), UTC) for t in git(root, "log", "--format=%at").split()]
    recorded = [e.recorded_at.replace(microsecond=0) for e in await base.log.read(0)]
    assert times == [recorded[-1], recorded[6]]
    names = git(root, "-c", "core.quotepath=off", "ls-tree", "-r", "--name-only", "main")
    assert names.startswith("default/")
    assert "Закон." in names
    assert "второй" in git(root, "show", f"main:{names.strip()}")
    assert "первый" in git(root, "show", f"main~1:{names.strip()}")
    git(root, "fsck", "--strict")


async def test_going_on_and_beginning_anew_make_the_same_commits(
    base: SmallBase, tmp_path: Path
) -> None:
    for n in range(4):
        await base.add(f"текст {n}", source=f"k{n % 2}", valid_from=day(n + 1))
        step = await kept(base, tmp_path / "steps")
        assert step.commits == 1
    assert (await kept(base, tmp_path / "steps")).commits == 0
    once = await kept(base, tmp_path / "once")
    anew = await kept(base, tmp_path / "steps", rebuild=True)
    assert step.head == once.head == anew.head
    assert (once.commits, anew.commits) == (4, 4)


async def test_an_erased_text_is_in_no_object_of_the_repository(
    base: SmallBase, tmp_path: Path
) -> None:
    root = tmp_path / "git"
    gone = await base.add("секрет", source="k", valid_from=day(1))
    await base.add("остаётся", source="k", valid_from=day(2))
    await kept(base, root)
    assert told(root, "секрет")
    await base.erase(gone)
    done = await kept(base, root)
    assert done.rebuilt
    assert not told(root, "секрет")
    assert told(root, "остаётся")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".git.") and p.is_dir()]
    assert (await kept(base, tmp_path / "other")).head == done.head
    assert not (await kept(base, root)).rebuilt


async def test_what_is_sent_again_after_its_erasure_is_committed_again(
    base: SmallBase, tmp_path: Path
) -> None:
    root = tmp_path / "git"
    first = await base.add("ещё раз", source="k")
    await kept(base, root)
    await base.erase(first)
    assert (await kept(base, root)).files == 0
    await base.add("ещё раз", source="k")
    done = await kept(base, root)
    assert done.files == 1
    assert (await kept(base, tmp_path / "other")).head == done.head


async def test_a_return_to_an_earlier_text_is_a_commit(base: SmallBase, tmp_path: Path) -> None:
    for n, text in enumerate(("а", "б"), 1):
        await base.add(text, source="k", valid_from=day(n))
    await base.receive("а", source="k", valid_from=day(3))
    done = await kept(base, tmp_path / "git")
    assert done.commits == 3
    assert git(tmp_path / "git", "log", "-1", "--format=%s").startswith("Reinstate ")
    assert git(tmp_path / "git", "diff", "--stat", "main~2", "main").strip() != ""


async def test_a_folder_that_is_no_mirror_is_left_alone(base: SmallBase, tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "mine.txt").write_text("x")
    with pytest.raises(Refusal) as refused:
        await kept(base, tmp_path / "git", rebuild=True)
    assert refused.value.code == "no-mirror"
    assert files(tmp_path / "git") == ["mine.txt"]


async def test_what_a_killed_rebuild_left_goes(base: SmallBase, tmp_path: Path) -> None:
    await base.add("a")
    await kept(base, tmp_path / "git")
    for name in (".git.old", ".git.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "object").write_text("секрет")
    await kept(base, tmp_path / "git")
    assert not told(tmp_path, "секрет")
