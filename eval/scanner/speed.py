"""How fast the scanner is on one core, and how its time grows with the size of a text."""

import base64
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eval.scanner.items import Judge
from eval.scanner.sets import honest

PATIENCE_SECONDS = 120
MB = 1_000_000


@dataclass(frozen=True)
class Growth:
    """Seconds of processor time for sizes in MB; None took longer than anyone waits."""

    name: str
    seconds: dict[int, float | None]

    @property
    def ratio(self) -> float | None:
        """Time per MB of the largest text against that of the smallest: 1 is linear."""
        sizes = sorted(self.seconds)
        small, large = self.seconds[sizes[0]], self.seconds[sizes[-1]]
        if not small or large is None:
            return None
        return (large / sizes[-1]) / (small / sizes[0])


def scripts(data: Path) -> dict[str, str]:
    """About 3 MB of honest text in each script."""
    made: dict[str, list[str]] = {"Latin": [], "Cyrillic": []}
    sizes = dict.fromkeys(made, 0)
    for _, item in honest(data):
        text = item.parts[0].text
        cyrillic = sum("Ѐ" <= c <= "ӿ" for c in text[:400]) * 2 > len(text[:400])
        script = "Cyrillic" if cyrillic else "Latin"
        if sizes[script] < 3 * MB:
            made[script].append(text)
            sizes[script] += len(text.encode())
    return {script: "\n\n".join(texts) for script, texts in made.items()}


def throughput(texts: dict[str, str], judge: Judge, rounds: int = 3) -> dict[str, float]:
    """MB of UTF-8 per second of processor time: the best of some rounds, interleaved."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, text in texts.items():
            speed = len(text.encode()) / MB / timed(judge, text)
            best[name] = max(speed, best.get(name, 0.0))
    return best


def timed(judge: Judge, text: str) -> float:
    """Seconds of processor time."""
    began = time.process_time()
    judge.judge(text)
    return time.process_time() - began


def learned_speed(
    texts: dict[str, str], whole: Judge, rules: Judge
) -> dict[str, tuple[float, int]]:
    """By script: tokens a second of the clock that the learned layer adds, and how many there are.

    Of a long text it encodes a part only; all of its tokens count here.
    """
    found = {}
    for name, text in texts.items():
        added = max(1e-6, _wall(whole, text) - _wall(rules, text))
        count = tokens(text)
        found[name] = count / added, count
    return found


def _wall(judge: Judge, text: str) -> float:
    began = time.perf_counter()
    judge.judge(text)
    return time.perf_counter() - began


def tokens(text: str) -> int:
    """Of the bundled embedder's vocabulary."""
    from kernel.embedder.bundled import bundled_tokenizer, bundled_weights
    from kernel.embedder.q4file import Q4File

    tokenizer = bundled_tokenizer(Q4File(bundled_weights()).vocabulary)
    return sum(len(tokenizer.encode(line).ids) for line in text.split("\n") if line)


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece.encode()) + 1))[:size]


def _packed(size: int) -> str:
    data = random.Random(5).randbytes(size * 3 // 4)
    return base64.b64encode(data).decode()


def hostile() -> dict[str, Callable[[int], str]]:
    """Texts that are hard on matchers, by name; of about so many bytes."""
    pieces = {
        "a": "a", "[": "[", "(": "(", "<": "<", "<!--": "<!--", "&#": "&#", "%4": "%4", "=4": "=4",
        "\\u00": "\\u00", '"': '"', "`": "`", "> ": "> ", "blanks": " ", "newlines": "\n",
        "a b": "a b ", "zero width": "a\u200b", "tags": "\U000e0041", "bidi": "\u202e",
        "ignore": "ignore ", "ignore all": "ignore all the ", "i g n o r e": "i g n o r e ",
        "<div style>": '<div style="', "full stops": ".", "hex": "4a", "игнорируй": "игнорируй ",
    }  # fmt: skip
    return {"base64": _packed} | {name: _repeated(piece) for name, piece in pieces.items()}


def growth(data: Path, judge: Judge) -> Iterator[Growth]:
    """Honest text of 1, 5 and 20 MB; hostile texts of 1 and 5 MB."""
    texts = scripts(data)
    whole = "\n\n".join(texts.values())
    mixed = _repeated(whole)
    # Not cut by bytes: a character in between would be lost, a few more bytes do no harm.
    yield _grown("honest, both scripts", mixed, judge, (1, 5, 20))
    for name, make in hostile().items():
        yield _grown(f"{name}, again and again" if name != "base64" else name, make, judge, (1, 5))


def _grown(name: str, make: Callable[[int], str], judge: Judge, sizes: tuple[int, ...]) -> Growth:
    seconds: dict[int, float | None] = {}
    for size in sizes:
        try:
            with _patience():
                seconds[size] = timed(judge, make(size * MB))
        except TimeoutError:
            seconds[size] = None
    return Growth(name, seconds)


@contextmanager
def _patience() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
