"""The scanner's evaluation: its arithmetic, its disguises and its held-out set."""

import base64
import codecs
import gzip
import html
import json
import subprocess
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from contracts.artifacts import HiddenText
from contracts.events import Finding, Verdict
from eval.corpus import EVALDATA
from eval.scanner import __main__ as command
from eval.scanner import adapter, disguise, heldout, peers, sets
from eval.scanner.items import Item, Judged, Part, bare, judged
from eval.scanner.report import some, thinned
from eval.scanner.speed import Growth, hostile, timed
from eval.scanner.tally import Tally, by_group, cells, gaps, kept, share, table, tally
from services.scanner.domain import ScanResult


def seen(label: int, verdict: Verdict, **groups: str) -> Judged:
    return Judged(bare("x", label, "", **groups), verdict, 0.5, ())


class Words:
    """Says of a text what it says of itself."""

    version = "words"

    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult:
        verdict: Verdict = "block" if "bad" in text else "quarantine" if "odd" in text else "clean"
        finding = Finding(rule=f"r.{verdict}", severity="low", byte_start=0, byte_end=1)
        score = 0.9 if "odd" in text else 0.1
        return ScanResult(verdict, score, () if verdict == "clean" else (finding,))


# -- arithmetic ------------------------------------------------------------------------------------


def test_attacks_and_honest_texts_are_counted_apart_at_both_points() -> None:
    rows = [seen(1, "block"), seen(1, "quarantine"), seen(1, "clean"), seen(0, "quarantine")]
    counts = tally(rows)
    assert counts == Tally(3, 1, 2, 1, 0, 1)
    assert counts.recall == pytest.approx(2 / 3)
    assert counts.false_alarms == 1.0
    assert cells(counts) == ["1/3 33.3 %", "2/3 66.7 %", "0/1 0.0 %", "1/1 100.0 %"]


def test_of_nothing_there_is_no_share() -> None:
    assert (tally([]).recall, tally([]).false_alarms, share(0, 0)) == (None, None, "–")


def test_groups_are_those_of_the_items_that_have_them() -> None:
    rows = [seen(1, "block", lang="de"), seen(1, "clean", lang="bg"), seen(1, "clean")]
    assert {k: v.attacks_flagged for k, v in by_group(rows, "lang").items()} == {"bg": 0, "de": 1}


def test_gaps_are_points_against_english() -> None:
    found = gaps({"en": 0.9, "mk": 0.82, "sl": 0.95, "ru": None})
    assert {k: round(v, 1) for k, v in found.items()} == {"en": 0.0, "mk": -8.0, "sl": 5.0}
    assert gaps({"mk": 0.5}) == {}


def test_a_disguise_is_measured_on_what_is_found_without_it() -> None:
    plain = [seen(1, "block", attack="a"), seen(1, "clean", attack="b")]
    hidden = [
        seen(1, "quarantine", attack="a", technique="hex"),
        seen(1, "clean", attack="a", technique="leet"),
        seen(1, "clean", attack="b", technique="hex"),
    ]
    assert kept(plain, hidden) == {"hex": (1, 1), "leet": (0, 1)}


def test_a_table_is_markdown() -> None:
    assert table(("a", "b"), [["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]


def test_an_item_of_several_parts_has_the_worst_verdict_and_the_highest_score() -> None:
    item = Item("x", 1, (Part("odd"), Part("bad"), Part("")))
    (found,) = judged([item], Words())
    assert (found.verdict, found.score) == ("block", 0.9)
    assert found.rules == ("r.quarantine", "r.block")
    assert (found.blocked, found.flagged) == (True, True)


def test_growth_compares_time_per_mb() -> None:
    assert Growth("x", {1: 0.5, 5: 2.5}).ratio == pytest.approx(1.0)
    assert Growth("x", {1: 0.1, 5: 2.5, 20: 40.0}).ratio == pytest.approx(20.0)
    assert Growth("x", {1: 0.1, 5: None}).ratio is None


def test_hostile_texts_have_the_size_that_is_asked_for() -> None:
    for name, make in hostile().items():
        assert 1000 <= len(make(1000).encode()) <= 4100, name


def test_time_is_that_of_the_processor() -> None:
    assert 0 <= timed(Words(), "a") < 1


# -- disguises -------------------------------------------------------------------------------------

TEXT = "Ein кот, ok."


def _unspaced(text: str) -> str:
    return " ".join(word.replace(" ", "") for word in text.split("   "))


BACK: dict[str, Callable[[str], str]] = {
    "zero width": lambda t: t.replace("\u200b", ""),
    "soft hyphen": lambda t: t.replace("\u00ad", ""),
    "base64": lambda t: base64.b64decode(t).decode(),
    "base64 wrapped": lambda t: base64.urlsafe_b64decode(t.replace("\n", "") + "===").decode(),
    "base64 twice": lambda t: base64.b64decode(base64.b64decode(t)).decode(),
    "gzip base64": lambda t: gzip.decompress(base64.b64decode(t)).decode(),
    "hex": lambda t: bytes.fromhex(t).decode(),
    "rot13": lambda t: codecs.encode(t, "rot13"),
    "spaced letters": _unspaced,
    "HTML comment": lambda t: t.removeprefix("<!-- ").removesuffix(" -->"),
    "entities": html.unescape,
    "URL, all": urllib.parse.unquote,
    "URL": urllib.parse.unquote,
    "quoted printable": lambda t: codecs.decode(t.encode(), "quopri").decode(),
    "\\u": lambda t: t.encode().decode("unicode_escape"),
}


@pytest.mark.parametrize("name", BACK)
def test_a_disguise_can_be_taken_off(name: str) -> None:
    assert BACK[name](disguise.DISGUISES[name](TEXT)) == TEXT


def test_disguises_for_latin_letters_are_for_latin_texts() -> None:
    assert set(disguise.disguised("Leave it.", latin=True)) == set(disguise.DISGUISES)
    cyrillic = disguise.disguised("Оставь это, кот.", latin=False)
    assert set(cyrillic) == set(disguise.DISGUISES) - disguise.LATIN_ONLY
    assert all(made != "Оставь это, кот." for made in cyrillic.values())


def test_homoglyphs_go_into_the_other_alphabet() -> None:
    assert disguise.homoglyphs("cope") == "соре"
    assert disguise.homoglyphs("Сорока") == "Copoкa"


# -- the held-out set ------------------------------------------------------------------------------


def test_every_sentence_is_there_in_all_variants() -> None:
    counts = Counter(row["kind"] for row in sets.rows(heldout.FIRST))
    size = {"task": 40, "override": 30, "near-miss": 40, "host": 10}
    assert counts == {kind: 9 * count for kind, count in size.items()}
    ids = {row["id"] for row in sets.rows(heldout.FIRST)}
    assert ids == {
        f"{kind}-{number:02}-{variant}"
        for kind, count in size.items()
        for number in range(1, count + 1)
        for variant in heldout.VARIANTS
    }
    assert {row["lang"] for row in sets.rows(heldout.FIRST)} == set(heldout.VARIANTS)


@pytest.mark.parametrize(("kind", "groups"), [("task", 40), ("override", 130), ("near-miss", 130)])
def test_the_second_set_has_every_sentence_in_all_variants(kind: str, groups: int) -> None:
    found = list(heldout.held_out(kind, heldout.SECOND))
    assert Counter(row["lang"] for row in found) == dict.fromkeys(heldout.VARIANTS, groups)
    assert len({row["id"] for row in found}) == 9 * groups
    twins = {row["id"]: row["text"] for row in found}
    assert all(twins[i] != twins[i.replace("Latn", "Cyrl")] for i in twins if "Latn" in i)


@pytest.mark.parametrize("place", heldout.PLACES)
def test_an_attack_is_put_into_its_host_and_nothing_else_changes(place: str) -> None:
    for host in ("One.\n\nTwo.\n\nThree.", "One. Two. Three."):
        made = heldout.inserted(host, "Bad", place)
        assert "Bad" in made
        words = [w.strip(".") for w in made.split() if w != "Bad" and w != "Bad."]
        assert words == ["One", "Two", "Three"]
    assert heldout.inserted("A.\n\nB.", "X", "start").startswith("X\n\n")
    assert heldout.inserted("A.\n\nB.", "X", "end").endswith("\n\nX")


@pytest.mark.skipif(not EVALDATA.exists(), reason="EVALUATION DATA IS NOT THERE")
def test_every_variant_has_hosts_and_every_attack_three_places() -> None:
    homes = heldout.hosts(EVALDATA)
    assert set(homes) == set(heldout.VARIANTS)
    assert min(map(len, homes.values())) >= 40
    items = list(heldout.buried(EVALDATA, "task"))
    assert len(items) == 40 * 9 * 3
    assert [i.id for i in items] == [i.id for i in heldout.buried(EVALDATA, "task")]
    assert {i.groups["place"] for i in items} == set(heldout.PLACES)


def test_of_neighbours_one_is_taken_each_in_its_turn() -> None:
    items = [bare(str(n), 1, "") for n in range(9)]
    assert [item.id for item in thinned(items, 3)] == ["0", "4", "8"]
    assert thinned(items, 1) == items


@pytest.mark.skipif(not EVALDATA.exists(), reason="EVALUATION DATA IS NOT THERE")
def test_of_fewer_texts_all_variants_keep_the_same() -> None:
    items = list(heldout.buried(EVALDATA, "override", heldout.SECOND))
    kept = some(items, 2, 3)
    assert len(kept) == 130 * 9 // 2
    groups = {
        variant: {heldout.group_of(i) for i in kept if i.groups["lang"] == variant}
        for variant in heldout.VARIANTS
    }
    assert len(groups["en"]) == 65
    assert all(found == groups["en"] for found in groups.values())
    assert {i.groups["place"] for i in kept} == set(heldout.PLACES)


@pytest.mark.skipif(not EVALDATA.exists(), reason="EVALUATION DATA IS NOT THERE")
def test_every_variant_has_a_book_and_attacks_in_it() -> None:
    items = list(heldout.in_books(EVALDATA))
    counts = Counter((item.groups["lang"], item.label) for item in items)
    assert counts == {(v, n): 3 if n else 1 for v in heldout.VARIANTS for n in (0, 1)}
    assert all(140_000 < len(item.parts[0].text) < 152_000 for item in items)
    assert len({item.parts[0].text for item in items}) == len(items)


@pytest.mark.skipif(not EVALDATA.exists(), reason="EVALUATION DATA IS NOT THERE")
def test_labelled_sets_are_read_whole() -> None:
    counts = Counter(item.label for item in sets.labelled(EVALDATA, "bipia"))
    assert counts == {1: 450, 0: 128}
    about = Counter(i.groups["about"] for i in sets.labelled(EVALDATA, "benign_hard"))
    assert set(about) == {"about injection", "anything else"}


# -- peers and the command -------------------------------------------------------------------------


def test_an_adapter_answers_every_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(adapter.ADAPTERS, "odd", lambda: lambda text: ("o" in text, "!" in text))
    rows = tmp_path / "rows"
    rows.write_text('{"id": 0, "text": "odd!"}\n{"id": 1, "text": "и"}\n')
    with rows.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        adapter.main("odd")
    *answers, spent = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert answers == [
        {"id": 0, "flag": True, "strict": True}, {"id": 1, "flag": False, "strict": False},
    ]  # fmt: skip
    assert spent["bytes"] == 6


def test_every_peer_has_its_adapter() -> None:
    assert {peer.name for peer in peers.PEERS} == set(adapter.ADAPTERS)


def test_a_peer_that_leaves_rows_out_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object) -> list[dict[str, object]]:
        return [{"id": 0, "flag": True, "strict": False}, {"seconds": 1.0, "bytes": 2}]

    monkeypatch.setattr(peers, "_asked", short)
    items = [bare("a", 1, "a"), bare("b", 1, "b")]
    assert peers._theirs(peers.PEERS[0], {"s": items[:1]}).counts == ((1, 1, 0),)
    with pytest.raises(ValueError, match="did not answer"):
        peers._theirs(peers.PEERS[0], {"s": items})


def test_answers_are_counted_set_by_set() -> None:
    flags = [(True, False), (True, True), (False, False)]
    assert peers._counted([1, 0, 2], flags) == ((1, 1, 0), (0, 0, 0), (2, 1, 1))


def test_predictions_are_those_that_the_scorer_reads(tmp_path: Path) -> None:
    items = {"s": [bare("1", 1, "bad"), bare("2", 1, "odd"), bare("3", 0, "")]}
    command.dump(items, Words(), tmp_path)
    flags = {
        point: [json.loads(line)["flag"] for line in (tmp_path / f"s.{point}.jsonl").open()]
        for point in ("block", "review")
    }
    assert flags == {"block": [1, 0, 0], "review": [1, 1, 0]}


def test_misses_are_named_without_their_text(tmp_path: Path) -> None:
    items = {"s": [bare("1", 1, "good secret", lang="mk"), bare("2", 0, "bad"), bare("3", 0, "")]}
    command.misses(items, Words(), tmp_path / "m")
    rows = [json.loads(line) for line in (tmp_path / "m").open()]
    assert [(row["id"], row["verdict"]) for row in rows] == [("1", "clean"), ("2", "block")]
    assert "secret" not in (tmp_path / "m").read_text()


def test_an_unknown_section_is_wrong_usage() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eval.scanner", "nonsense"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 2
    assert "no section nonsense" in done.stderr or "not at" in done.stderr
