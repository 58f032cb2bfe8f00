"""Language identification measured on text that the model was not trained on.

`python -m eval.language [--peers] [--extra DIR] [--seed N]` prints tables in Markdown.

Texts: `../shared/evaldata`: Leipzig sentences of lingua's tests (`lid/lingua`), declarations of
human rights (`lid/udhr_paragraphs`), help pages (`gnome_help`, `libreoffice_help`), Pro Git, school
exams and Wikipedia snippets. `--extra DIR`: files `NAME.LANGUAGE.txt`, one text a line (treebanks,
parliaments). The texts of a set are joined in their order and cut between words into pieces of
about 60, 140 and 250 characters. `sr-Latn*` is Cyrillic text of the same set transliterated;
`sr-Latn` was written in Latin script. For training see `eval/train_language.py`: other packages,
other authors, but translated programs are in both, so the help pages are the easiest of the sets.

Peers: gcld3 alone, and lingua and py3langid where they are installed (`--peers`).
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from eval.language_sources import latin
from kernel.language import ACCEPTED, BOSNIAN, UNKNOWN, identifier, identify

DATA = Path(__file__).parents[1] / "../shared/evaldata"
LENGTHS = (60, 140, 250)
MOST = 200
"""Pieces of one set, variant and length."""

Texts = dict[str, list[str]]
Detector = Callable[[str], str]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def sets(extra: Path | None) -> dict[str, Texts]:
    """Set → variant (language, Serbian with its script) → texts."""
    found: dict[str, Texts] = {}
    found["lingua"] = _lid(DATA / "lid/lingua/sentences.jsonl")
    found["udhr"] = _lid(DATA / "lid/udhr_paragraphs/paragraphs.jsonl")
    retrieval = DATA / "retrieval"
    for name in ("gnome_help", "libreoffice_help", "progit"):
        found[name] = {
            folder.name: [row["text"] for row in _rows(folder / "corpus.jsonl")]
            for folder in sorted((retrieval / name).iterdir())
        }
    for name, pattern in (("exams", "exams_parallel/questions_*"), ("wiki", "exams_wiki_*/*")):
        found[name] = {
            file.stem.removeprefix("questions_"): [row["text"] for row in _rows(file)]
            for file in sorted(retrieval.glob(f"{pattern}.jsonl"))
        }
    for file in sorted(extra.glob("*.txt")) if extra else ():
        name, code, _ = file.name.split(".")
        found.setdefault(name, {})[code] = file.read_text("utf-8").splitlines()
    for texts in found.values():
        if "sr" in texts:
            texts["sr-Cyrl"] = texts.pop("sr")
        if "sr-Cyrl" in texts:
            texts["sr-Latn*"] = [latin(text) for text in texts["sr-Cyrl"]]
    return found


def _lid(path: Path) -> Texts:
    texts: Texts = defaultdict(list)
    for row in _rows(path):
        script = str(row.get("code", "")).partition("_")[2].capitalize()
        variant = (
            f"{row['lang']}-{script}" if row["lang"] in {"sr", "bs"} and script else row["lang"]
        )
        texts[variant].append(row["text"])
    return dict(texts)


def pieces(texts: Iterable[str], length: int) -> list[str]:
    """Texts joined and cut between words, each piece `length` characters or a little less."""
    made, buffer = [], ""
    for text in texts:
        buffer = f"{buffer} {' '.join(text.split())}".strip()
        while len(buffer) > length:
            end = buffer.rfind(" ", length // 2, length + 1)
            end = end if end > 0 else length
            made.append(buffer[:end])
            buffer = buffer[end:].strip()
    return made


def ours(text: str) -> str:
    """The product's answer."""
    return identify(text).code


def gcld3(text: str) -> str:
    """The compact detector alone."""
    code = str(identifier().FindLanguage(text).language)
    return {"iw": "he", "no": "nb"}.get(code, code)


def peers() -> dict[str, Detector]:
    """Other detectors, where they are installed."""
    found: dict[str, Detector] = {}
    try:
        import py3langid
    except ImportError:
        print("py3langid is not installed", file=sys.stderr)
    else:
        found["py3langid"] = lambda text: str(py3langid.classify(text)[0])
    try:
        from lingua import LanguageDetectorBuilder
    except ImportError:
        print("lingua-language-detector is not installed", file=sys.stderr)
    else:
        lingua = LanguageDetectorBuilder.from_all_languages().build()

        def with_lingua(text: str) -> str:
            language = lingua.detect_language_of(text)
            return language.iso_code_639_1.name.lower() if language else "unknown"

        found["lingua, 75 languages"] = with_lingua
    return found


def accuracy(
    detector: Detector, texts: dict[str, Texts], length: int, seed: int
) -> dict[str, dict[str, tuple[int, Counter[str]]]]:
    """Variant → set → how many pieces, and how often each answer."""
    found: dict[str, dict[str, tuple[int, Counter[str]]]] = defaultdict(dict)
    for name, variant, cut in sampled(texts, length, seed):
        found[variant][name] = (len(cut), Counter(map(detector, cut)))
    return found


def sampled(
    texts: dict[str, Texts], length: int, seed: int
) -> Iterator[tuple[str, str, list[str]]]:
    """Set, variant and its pieces, at most `MOST`; the same for the same seed."""
    chance = random.Random(seed)
    for name, variants in texts.items():
        for variant, strings in variants.items():
            cut = pieces(strings, length)
            cut = chance.sample(cut, MOST) if len(cut) > MOST else cut
            if cut:
                yield name, variant, cut


def report(detectors: dict[str, Detector], texts: dict[str, Texts], seed: int) -> None:
    """Tables: accepted variants, then what became of the others."""
    heads = " | ".join(f"{length} chars" for length in LENGTHS)
    for name, detector in detectors.items():
        by_length = [accuracy(detector, texts, length, seed) for length in LENGTHS]
        print(f"\n### {name}: share of pieces called right\n")
        print(f"| variant | {heads} | by set, at {' / '.join(map(str, LENGTHS))} |")
        print("|---|" + "---|" * (len(LENGTHS) + 1))
        for variant in sorted(by_length[0]):
            code = variant[:2]
            if code in ACCEPTED:
                print(_line(variant, code, by_length))
        print(_others(by_length), flush=True)


def _line(variant: str, code: str, by_length: list[Any]) -> str:
    totals, names = [], sorted({name for found in by_length for name in found[variant]})
    for found in by_length:
        whole = sum(count for count, _ in found[variant].values())
        right = sum(answers[code] for _, answers in found[variant].values())
        totals.append(f"{right / whole:.3f}" if whole else "–")
    parts = []
    for name in names:
        figures = [found[variant].get(name, (0, Counter())) for found in by_length]
        rates = [f"{a[code] / n:.3f}" if n else "–" for n, a in figures]
        parts.append(f"{name} {'/'.join(rates)}")
    return f"| {variant} | " + " | ".join(totals) + f" | {'; '.join(parts)} |"


def _others(by_length: list[Any]) -> str:
    lines = ["", "| | 60 chars | 140 chars | 250 chars |", "|---|---|---|---|"]
    kinds: tuple[tuple[str, Callable[[str], bool], Callable[[int, Counter[str]], int]], ...] = (
        ("accepted languages called a foreign one", ACCEPTED.__contains__, _lost),
        (
            "foreign languages (not Bosnian) called an accepted one",
            lambda code: code not in ACCEPTED and code != BOSNIAN,
            lambda _, answers: sum(answers[code] for code in ACCEPTED),
        ),
        (
            "Bosnian called Croatian or Serbian",
            lambda code: code == BOSNIAN,
            lambda _, answers: answers["hr"] + answers["sr"],
        ),
    )
    for title, is_asked, counted in kinds:
        cells = []
        for found in by_length:
            asked = [named for variant, named in found.items() if is_asked(variant[:2])]
            results = [result for named in asked for result in named.values()]
            hits = sum(counted(count, answers) for count, answers in results)
            cells.append(f"{hits} of {sum(count for count, _ in results)}")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _lost(count: int, answers: Counter[str]) -> int:
    return count - sum(answers[code] for code in ACCEPTED) - answers[UNKNOWN]


def speed(texts: dict[str, Texts], detectors: dict[str, Detector]) -> None:
    """Texts of 140 characters a second, all variants mixed."""
    mixed = [
        piece
        for variants in texts.values()
        for strings in variants.values()
        for piece in pieces(strings[:20], 140)[:5]
    ]
    random.Random(1).shuffle(mixed)
    print("\n| detector | texts of 140 characters/s (CPU time) |\n|---|---|")
    for name, detector in detectors.items():
        detector(mixed[0])
        started, count = time.process_time(), 0
        while time.process_time() - started < 2:
            detector(mixed[count % len(mixed)])
            count += 1
        print(f"| {name} | {count / (time.process_time() - started):.0f} |")


LOADING = """
import resource, time
t = time.process_time()
from kernel.language import identify
a = time.process_time()
identify("Ovo je kratak tekst na srpskom jeziku.")
print(a - t, time.process_time() - a)
"""


def loading() -> None:
    """CPU seconds of import and first answer, in a fresh process."""
    told = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"\nimport {float(told[0]):.2f} s, first answer {float(told[1]):.2f} s (CPU time)")


def bosnian(texts: dict[str, Texts]) -> None:
    """How often the label is given, to Bosnian and to its neighbours."""
    print("\n| variant, 250 characters | labelled Bosnian |\n|---|---|")
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for variants in texts.values():
        for variant, strings in variants.items():
            if variant[:2] in {"bs", "hr", "sr"}:
                for piece in pieces(strings, 250)[:MOST]:
                    totals[variant][0] += 1
                    totals[variant][1] += identify(piece).label == BOSNIAN
    for variant, (whole, labelled) in sorted(totals.items()):
        print(f"| {variant} | {labelled} of {whole} |")


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--peers", action="store_true", help="lingua and py3langid too")
    options.add_argument("--extra", type=Path, help="more texts, NAME.LANGUAGE.txt")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    if not DATA.exists():
        sys.exit(f"no evaluation data at {DATA}")
    texts = sets(given.extra)
    detectors: dict[str, Detector] = {"citelog": ours, "gcld3 alone": gcld3}
    if given.peers:
        detectors |= peers()
    report(detectors, texts, given.seed)
    bosnian(texts)
    speed(texts, detectors)
    loading()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory of this run: {peak} MB")


if __name__ == "__main__":
    main()
