"""The tables that go into `eval/RESULTS.md`."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from eval.scanner import files, heldout, sets
from eval.scanner.items import Item, Judge, Judged, judged
from eval.scanner.speed import growth, learned_speed, scripts, throughput
from eval.scanner.tally import HEADS, by_group, cells, gaps, kept, share, table, tally

Judges = dict[str, Judge]
"""By name: `rules`, and `rules + learned` where there is a learned layer."""

SPLITS = {
    **{name: groups for name, (_, groups) in sets.LABELLED.items()},
    "phantomlint": ("technique",),
    "docx_hidden_hr": ("technique",),
}


def labelled(data: Path, wanted: frozenset[str]) -> dict[str, list[Item]]:
    """Items of the labelled sets; the files are converted."""
    found = {n: list(sets.labelled(data, n)) for n in sets.LABELLED if not wanted or n in wanted}
    if not wanted or wanted & files.MANIFESTS.keys():
        made, refused = asyncio.run(files.attack_files(data))
        found |= {name: items for name, items in made.items() if not wanted or name in wanted}
        for name, code in refused:
            print(f"refused by the converter: {name} ({code})")
    return found


def detection(found: dict[str, list[Item]], judges: Judges) -> Iterator[str]:
    """A row for each set and judge, then the same split by the set's groups."""
    results = {
        (name, who): list(judged(items, judge))
        for name, items in found.items()
        for who, judge in judges.items()
    }
    rows = [[n, who, *cells(tally(rows))] for (n, who), rows in results.items()]
    yield from table(("set", "judge", *HEADS), rows)
    for name in found:
        for group in SPLITS[name]:
            yield from _split(name, group, {who: results[name, who] for who in judges})


def _split(title: str, group: str, results: dict[str, list[Judged]]) -> Iterator[str]:
    counted = {who: by_group(rows, group) for who, rows in results.items()}
    values = {value: None for counts in counted.values() for value in counts}
    if len(values) < 2:
        return
    yield ""
    rows = [[v, who, *cells(counts[v])] for v in values for who, counts in counted.items()]
    yield from table((f"{title}: {group}", "judge", *HEADS), rows)


def honest(data: Path, judges: Judges, *, with_files: bool) -> Iterator[str]:
    """False alarms on texts without attacks; what was flagged is named below."""
    found: dict[str, list[Item]] = {}
    for name, item in sets.honest(data):
        found.setdefault(name, []).append(item)
    if with_files:
        made, refused = asyncio.run(files.honest_files(data))
        found |= made
        yield f"{len(refused)} of the files are refused by the converter."
        yield ""
    rows, flagged = [], []
    for name, items in found.items():
        for who, judge in judges.items():
            results = list(judged(items, judge))
            rows.append([name, who, *cells(tally(results))[2:]])
            flagged += [(name, who, r) for r in results if r.flagged]
    yield from table(("honest texts", "judge", *HEADS[2:]), rows)
    yield ""
    for name, who, result in flagged:
        rules = ", ".join(result.rules[:4])
        yield f"* {name}, {who}: {Path(result.item.id).name}: {result.verdict} ({rules})"


def held_out(data: Path, judges: Judges) -> Iterator[str]:
    """The set nobody looks at: recall and false alarms in each language."""
    books = list(heldout.in_books(data))
    groups: dict[str, list[Item]] = {
        _TASKS: list(heldout.buried(data, "task")),
        _ATTACKS: list(heldout.buried(data, "override")),
        _DISGUISED: list(heldout.in_disguise(data)),
        _ALONE: list(heldout.alone("near-miss", 0)),
        _HARMLESS: list(heldout.harmless(data)),
        _TASKS_2: list(heldout.buried(data, "task", heldout.SECOND)),
        _ATTACKS_2: list(heldout.buried(data, "override", heldout.SECOND)),
        _LONE_2: list(heldout.alone("override", 1, heldout.SECOND)),
        _ALONE_2: list(heldout.alone("near-miss", 0, heldout.SECOND)),
        _HARMLESS_2: list(heldout.harmless(data, heldout.SECOND)),
        _BOOKS: [item for item in books if item.label],
        _HONEST_BOOKS: [item for item in books if not item.label],
    }
    found = {
        (name, who): list(judged(items if who == "rules" else some(items, *_STEPS[name]), judge))
        for name, items in groups.items()
        for who, judge in judges.items()
    }
    heads = ("held out", "judge", *heldout.VARIANTS, "worst against en")
    yield from table(heads, ([n, who, *_by_language(rows)] for (n, who), rows in found.items()))
    yield ""
    rows = [[name, who, *cells(tally(results))] for (name, who), results in found.items()]
    yield from table(("held out", "judge", *HEADS), rows)
    yield ""
    yield from _places(found, judges)
    yield ""
    yield from _themes(found, judges)
    yield ""
    yield from _disguises(found, judges)


_TASKS = "tasks in hosts"
_ATTACKS = "override, exfiltration, role play in hosts"
_DISGUISED = "the same in disguise"
_ALONE = "near misses alone"
_HARMLESS = "hosts, and near misses in them"
_TASKS_2 = "second set: tasks in hosts"
_ATTACKS_2 = "second set: attacks in hosts"
_LONE_2 = "second set: attacks alone"
_ALONE_2 = "second set: near misses alone"
_HARMLESS_2 = "second set: near misses in hosts"
_BOOKS, _HONEST_BOOKS = "both sets: attacks in books", "the books"
_STEPS = {
    _TASKS: (1, 3), _ATTACKS: (1, 3), _DISGUISED: (1, 40), _ALONE: (1, 1), _HARMLESS: (1, 4),
    _TASKS_2: (1, 3), _ATTACKS_2: (2, 3), _LONE_2: (3, 1), _ALONE_2: (3, 1), _HARMLESS_2: (3, 1),
    _BOOKS: (1, 1), _HONEST_BOOKS: (1, 1),
}  # fmt: skip
"""What the learned layer reads, as it takes half a second for a document: one of so many groups of
parallel texts, and of these one of so many neighbours, which are its places."""

_Found = dict[tuple[str, str], list[Judged]]


def thinned(items: list[Item], step: int) -> list[Item]:
    """One of each `step` neighbours: the first, then the second of the next, and so on."""
    return [item for n, item in enumerate(items) if n % step == n // step % step]


def some(items: list[Item], groups: int, step: int) -> list[Item]:
    """One of each `groups` groups of parallel texts, the same for all variants; thinned."""
    numbers: dict[str, int] = {}
    kept = []
    for item in items:
        if numbers.setdefault(heldout.group_of(item), len(numbers)) % groups == 0:
            kept.append(item)
    return thinned(kept, step)


def _places(found: _Found, judges: Judges) -> Iterator[str]:
    """Does it matter where in its host an attack stands?"""
    rows = []
    for name in (_TASKS, _ATTACKS, _TASKS_2, _ATTACKS_2):
        for who in judges:
            counts = by_group(found[name, who], "place")
            told = [share(counts[p].attacks_flagged, counts[p].attacks) for p in heldout.PLACES]
            rows.append([name, who, *told])
    yield from table(("held out, by place", "judge", *heldout.PLACES), rows)


def _themes(found: _Found, judges: Judges) -> Iterator[str]:
    """What kind of attack is not found, in English and in all others."""
    rows = []
    for who in judges:
        results = found[_ATTACKS, who]
        english = by_group((r for r in results if r.item.groups["lang"] == "en"), "theme")
        for theme, counts in by_group(results, "theme").items():
            told = share(english[theme].attacks_flagged, english[theme].attacks)
            rows.append([theme, who, told, share(counts.attacks_flagged, counts.attacks)])
    yield from table(("held out, by theme", "judge", "English", "all nine variants"), rows)


def _disguises(found: _Found, judges: Judges) -> Iterator[str]:
    rows = []
    for who in judges:
        disguised = found[_DISGUISED, who]
        still = kept(found[_ATTACKS, who], disguised)
        for technique, counts in by_group(disguised, "technique").items():
            part, whole = still.get(technique, (0, 0))
            rows.append([
                technique, who, share(counts.attacks_blocked, counts.attacks),
                share(counts.attacks_flagged, counts.attacks), share(part, whole),
            ])  # fmt: skip
    heads = ("in disguise", "judge", "block", "block or review", "of those found undisguised")
    yield from table(heads, rows)


def _by_language(results: list[Judged]) -> list[str]:
    """Share that is blocked or reviewed, by variant, and the largest gap below English."""
    counts = by_group(results, "lang")
    told = []
    for variant in heldout.VARIANTS:
        found = counts.get(variant)
        if found is None:
            told.append("–")
        elif found.attacks:
            told.append(f"{100 * found.attacks_flagged / found.attacks:.1f} %")
        else:
            told.append(f"{found.honest_blocked}+{found.honest_flagged - found.honest_blocked}"
                        f"/{found.honest}")  # fmt: skip
    below = gaps({variant: found.recall for variant, found in counts.items()})
    worst = min(below, key=below.__getitem__, default=None)
    return [*told, f"{below[worst]:+.1f} ({worst})" if worst is not None else "–"]


def speeds(data: Path, judges: Judges) -> Iterator[str]:
    """MB/s of the rules on one core by script, what the learned layer adds, documents a second."""
    texts = scripts(data)
    found = throughput(texts, judges["rules"])
    rows = [["rules", script, f"{speed:.2f} MB/s"] for script, speed in found.items()]
    if whole := judges.get("rules + learned"):
        for kind, pieces in (("as one text", texts), ("20 kB of it", _starts(texts))):
            for script, (speed, count) in learned_speed(pieces, whole, judges["rules"]).items():
                told = f"{speed:,.0f} tokens/s of {count:,}"
                rows.append(
                    ["what the learned layer adds, by the clock", f"{script}, {kind}", told]
                )
    yield from table(("judge", "honest text", "speed"), rows)


def _starts(texts: dict[str, str]) -> dict[str, str]:
    return {script: text[:20_000] for script, text in texts.items()}


def sizes(data: Path, judge: Judge) -> Iterator[str]:
    """Growth of the rules' time."""
    rows = []
    for grown in growth(data, judge):
        told = [_seconds(grown.seconds, size) for size in (1, 5, 20)]
        ratio = f"{grown.ratio:.2f}" if grown.ratio is not None else "–"
        rows.append([grown.name, *told, ratio])
    yield from table(("text", "1 MB", "5 MB", "20 MB", "time per MB, largest : smallest"), rows)


def _seconds(found: dict[int, float | None], size: int) -> str:
    if size not in found:
        return "–"
    took = found[size]
    return "too long" if took is None else f"{took:.2f} s"
