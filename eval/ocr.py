"""Measures OCR: `python -m eval.ocr [PAGES] [--offset N]`.

Character error rate (edit distance over the length of the text, blanks folded) by language, on
pages drawn from evaluation data (`eval.ocr_pages`) and on real scans, for Tesseract alone, for
RapidOCR alone, and for our choice; then seconds a page. `best` takes the better engine of each page
by the truth: what a perfect choice would reach.
"""

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import mean

from PIL import Image
from rapidfuzz.distance import Levenshtein

from eval.corpus import EVALDATA
from eval.ocr_pages import DEGRADED, samples
from services.converter.parsing import ocr
from services.converter.parsing.ocr import PageReader
from services.converter.parsing.ocr_engines import Clock
from services.converter.parsing.pdf import parse_pdf
from services.converter.settings import ParseOptions

SCANS = EVALDATA / "parsing" / "ocr_docling"
TRUTHS = ("tesseract", "rapidocr", "nemotron_ocr")


def error_rate(truth: str, text: str) -> float:
    """Edits per character of the truth; blanks count as one."""
    wanted, got = " ".join(truth.split()), " ".join(text.split())
    return Levenshtein.distance(wanted, got) / max(1, len(wanted))


class _Measured(PageReader):
    """Notes how long each engine takes, and lets both read every page, for the columns."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = defaultdict(float)
        self.kept: ocr._Attempt | None = None

    def _by_tesseract(self, attempt: ocr._Attempt, script: str, clock: Clock) -> None:
        start = time.perf_counter()
        super()._by_tesseract(attempt, script, clock)
        self.seconds["tesseract"] += time.perf_counter() - start

    def _by_rapid(self, attempt: ocr._Attempt, clock: Clock) -> None:
        start = time.perf_counter()
        super()._by_rapid(attempt, clock)
        self.seconds["rapidocr"] += time.perf_counter() - start

    def _read(self, grey: Image.Image, clock: Clock) -> ocr._Attempt | None:
        # As on a later page of a document: the second engine reads when the first is not sure.
        self._pages = 1
        start = time.perf_counter()
        self.kept = super()._read(grey, clock)
        self.seconds["page"] = time.perf_counter() - start
        return self.kept

    def alone(self) -> dict[str, str]:
        """What each engine read by itself, in the position that was found."""
        texts: dict[str, str] = {}
        if self.kept is not None:
            apart = ocr._Attempt(0, 0.0, [], self.kept.image, dict(self.kept.texts))
            super()._by_rapid(apart, Clock(600))
            for name, text in apart.texts.items():
                texts[name] = " ".join(word.text for word in text.words)
        return texts


Row = tuple[str, str, float, float, float, float, dict[str, float]]


def drawn(pages: int, offset: int, kinds: Sequence[str]) -> Iterable[Row]:
    """(kind, language, Tesseract, RapidOCR, ours, best, seconds) of every page."""
    for number, sample in enumerate(samples(pages, offset)):
        for kind in kinds:
            image = DEGRADED[kind](sample.image, number)
            reader = _Measured()
            scan = reader.read(image, 1, (image.width * 0.36, image.height * 0.36))
            alone = {name: error_rate(sample.text, text) for name, text in reader.alone().items()}
            ours = error_rate(sample.text, " ".join(w.text for w in scan.words) if scan else "")
            tesseract, rapid = alone.get("tesseract", 1.0), alone.get("rapidocr", 1.0)
            best = min(tesseract, rapid)
            yield kind, sample.language, tesseract, rapid, ours, best, reader.seconds


def scans() -> Iterable[tuple[str, str, float, float]]:
    """(file, engine, error rate, seconds) of the real scans that come with a text."""
    for path in sorted(SCANS.glob("*.pdf")):
        texts = [
            file
            for truth in TRUTHS
            for file in sorted((SCANS / "groundtruth").glob(f"{path.stem}.{truth}.*"))
        ]
        if not texts:
            continue
        truth = _plain(texts[0].read_text("utf-8"))
        start = time.perf_counter()
        found = parse_pdf(path, ParseOptions())
        read = found.readings
        names = "+".join(sorted({reading.engine for reading in read}))
        seconds = (time.perf_counter() - start) / max(1, len(read))
        yield path.name, names, error_rate(truth, _plain(found.document.markdown)), seconds


def _plain(markdown: str) -> str:
    return re.sub(r"<!--.*?-->|[#|*`\\]|-{3,}", " ", markdown)


def main() -> None:
    """Print the tables as Markdown."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("pages", nargs="?", type=int, default=1, help="pages a language")
    arguments.add_argument("--offset", type=int, default=0, help="other text and typefaces")
    arguments.add_argument("--kinds", nargs="*", choices=[*DEGRADED], default=[*DEGRADED])
    arguments.add_argument("--scans", action=argparse.BooleanOptionalAction, default=True)
    options = arguments.parse_args()
    if not EVALDATA.exists():
        raise SystemExit(f"no evaluation data at {EVALDATA}")
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    rows: list[Row] = []
    print("| page | language | tesseract | rapidocr | ours | best |\n|---|---|---|---|---|---|")
    for row in drawn(options.pages, options.offset, options.kinds):
        rows.append(row)
        groups[row[0], row[1]].append(row)
    for (kind, language), found in sorted(groups.items()):
        print(_line(kind, language, found))
    for kind in options.kinds:
        print(_line(kind, "all", [row for row in rows if row[0] == kind]))
    for name in ("tesseract", "rapidocr", "page"):
        print(f"seconds a page, {name}: {mean(row[6].get(name, 0.0) for row in rows):.2f}")
    if not options.scans:
        return
    print("\n| scan | engine | error rate | s/page |\n|---|---|---|---|")
    for name, engine, error, seconds in scans():
        print(f"| {name} | {engine} | {error:.4f} | {seconds:.1f} |", flush=True)


def _line(kind: str, language: str, rows: list[Row]) -> str:
    cells = " | ".join(f"{mean(float(str(row[n])) for row in rows):.4f}" for n in (2, 3, 4, 5))
    return f"| {kind} | {language} | {cells} |"


if __name__ == "__main__":
    main()
