"""Train the language model: `python -m eval.train_language --work DIR --texts DIR`.

Writes `kernel/language/model.npz`; the table of words beside it is made by `eval.language_words`.
Needs `apt-get` and `pip` as clients, `tesseract-ocr`, git, scipy, torch and brotli; about half an
hour on one core. Sources and their licences: see `eval/language_sources.py` (packages) and
`eval/language_texts.py` (repositories, of which `--texts` has clones). Nothing of
`../shared/evaldata`, no UD test file and no parliament is trained on: those are for checking
(`python -m eval.language`).

Method: multinomial logistic regression over hashed runs of characters and words, four tables:

* `latin` and `cyrillic`: which language, Bosnian, Croatian and Serbian in Latin script being one;
* `south`: which of those three, from messages and words;
* `native`: Croatian or Serbian, from running text as well. Their scores are added up with weights
  (`eval.language_words --fit`).

In the last two, names of the countries, peoples and capitals are masked, so that a text is not
taken for Croatian because it speaks of Croatia; in `native` half of the examples lose all names.

Each example is a piece of 10 to 260 characters: of running text (`native` only), of catalogue
strings, or of words drawn by their frequency. The frequencies in news and web text are solved for:
which frequencies of the words of a list explain the known frequencies of runs of letters
(Richardson 1972, Lucy 1974: multiplicative updates, never negative). For `native` there are counts
as well: of news on the web, and of film subtitles, of which each language's have some of the
other's; that is taken out again. One of fourteen South Slavic examples has lost its diacritics, as
people write.

Which examples are drawn, and in which order they are learnt, moves the result; `native` is
therefore the mean of the weights of three trainings that differ in the seed alone. Scores are
linear in the weights: those of the mean are the mean of the three scores.
"""

import argparse
import json
import multiprocessing
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from eval import language_sources as sources
from eval import language_texts
from kernel.language import model
from kernel.language.features import Features, features, normalised

SOUTH = ("hr", "sr", "bs")
LATIN = {
    **{
        code: (code,)
        for code in (
            "en", "de", "sl", "cs", "sk", "pl", "nl", "da", "sv", "nb", "fi", "et", "lv", "lt",
            "fr", "es", "it", "ro", "ca", "hu", "tr", "sq", "vi", "is", "eu",
        )
    },
    "sh": SOUTH, "pt": ("pt", "pt_BR"), "id": ("id", "ms"), "xx": ("ga", "cy", "eo", "br", "az"),
}  # fmt: skip
CYRILLIC = {
    **{code: (code,) for code in ("bg", "ru", "sr", "mk", "uk", "be", "kk")},
    "xx": ("mn", "tg", "ky", "tt", "uz@cyrillic"),
}
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "south": {code: (code,) for code in SOUTH}, "native": {"hr": ("hr",), "sr": ("sr",)},
    "latin": LATIN, "cyrillic": CYRILLIC,
}  # fmt: skip
MASK = r"(?:hrvat|srb|srp|bosn|bosan|bošnj|herceg|zagreb|beograd|sarajev|jugoslav)"
_MASKED = re.compile(rf"\b{MASK}\w*", re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZČĆŽŠĐ][^\W\d_]*")
"""A capitalised word after a word."""
_PLAIN = str.maketrans("čćžšđČĆŽŠĐ", "cczsdCCZSD")
_FLAT = 0.85
"""Exponent over word frequencies: rare words are seen somewhat more often than in life."""


@dataclass(frozen=True)
class Recipe:
    """`running`, `drawn`: shares of examples that are running text and drawn words; `shared`: of
    the rest, the share that comes from packages which all classes have; `each`: examples a class;
    `seeds`: of the trainings whose mean is kept.
    """

    each: int
    drawn: float
    shared: float
    shortest: int
    bare: float
    rate: float
    epochs: int = 2
    running: float = 0.0
    seeds: tuple[int, ...] = (2,)


GENRES = {"news": 40, "talk": 25, "lessons": 22, "fiction": 13, "law": 12}
"""In which proportion pieces of running text are of a genre, so that both languages have alike. A
language without a genre has the others in proportion."""

Strings = dict[str, list[str]]
Draw = Callable[[int], str]


class Texts:
    """Examples of one language: of `strings` by package, of `running` text by genre and repository,
    of words that `draws` draw."""

    def __init__(
        self, strings: Strings, draws: Sequence[Draw], rng: random.Random, running: Strings
    ) -> None:
        self.packages = {k: v for k, v in strings.items() if sum(map(len, v)) > 4_000}
        self.draws, self.rng = draws, rng
        self._names, self._weights = _weighted(self.packages)
        genres: dict[str, Strings] = {}
        for name, paragraphs in running.items():
            genres.setdefault(name.partition(":")[0], {})[name] = paragraphs
        self._genres = [(GENRES[genre], *_weighted(genres[genre])) for genre in sorted(genres)]
        self._running = running

    def example(self, length: int, recipe: Recipe, common: Sequence[str]) -> tuple[str, bool]:
        """About `length` characters, and whether they are words drawn one by one."""
        kind = self.rng.random()
        if self._genres and kind < recipe.running:
            return self._prose(length), False
        if self.draws and kind < recipe.running + recipe.drawn:
            return self.rng.choice(self.draws)(length), True
        shared = common if common and self.rng.random() < recipe.shared else None
        return self._message(length, shared), False

    def _prose(self, length: int) -> str:
        """Paragraphs in their order."""
        of_hundred = [share for share, *_ in self._genres]
        _, names, weights = self.rng.choices(self._genres, of_hundred)[0]
        return self._cut(self._running[self.rng.choices(names, weights)[0]], 1, length)

    def _message(self, length: int, packages: Sequence[str] | None) -> str:
        rng = self.rng
        name = rng.choice(packages) if packages else rng.choices(self._names, self._weights)[0]
        return self._cut(self.packages[name], 1 if rng.random() < 0.7 else 7919, length)

    def _cut(self, strings: list[str], step: int, length: int) -> str:
        """Strings from a random one on, `step` further each time, cut between words."""
        at, text = self.rng.randrange(len(strings)), ""
        while len(text) < length:
            text += strings[at % len(strings)] + " "
            at += step
        start = self.rng.randrange(len(text) - length + 1)
        cut = text[start : start + length]
        if start:
            cut = cut[cut.find(" ") + 1 :]
        return cut[: cut.rfind(" ")] if " " in cut else cut


def _weighted(strings: Strings) -> tuple[list[str], list[float]]:
    names = sorted(strings)
    return names, [sum(map(len, strings[name])) ** 0.5 for name in names]


def frequencies(words: list[str], shares: dict[str, float], rounds: int = 40) -> Any:
    """Frequencies of `words` that explain the shares of the runs of letters in them."""
    from scipy.sparse import csr_matrix

    rows, columns, place = [], [], {gram: n for n, gram in enumerate(shares)}
    for column, word in enumerate(words):
        for size in range(1, 6):
            for at in range(len(word) - size + 1):
                rows.append(place[word[at : at + size]])
                columns.append(column)
    counts = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(place), len(words)))
    back = counts.T.tocsr()
    known = np.array(list(shares.values()))
    weight = np.array([len(gram) ** 2 for gram in shares], float)
    whole = np.maximum(back @ weight, 1e-9)
    found = np.full(len(words), 1 / len(words))
    for _ in range(rounds):
        made = counts @ found
        ratio = np.where(made > 0, known / np.maximum(made, 1e-15), 0.0)
        found *= (back @ (weight * np.minimum(ratio, 100))) / whole
    return found / found.sum()


def _by_chance(items: list[str], weights: Any, seed: int) -> Callable[[int], list[str]]:
    chance, sums = np.random.default_rng(seed), np.cumsum(weights / weights.sum())
    table = np.array(items, dtype=object)

    def draw(count: int) -> list[str]:
        at = np.searchsorted(sums, chance.random(count))
        return list(table[np.minimum(at, len(table) - 1)])

    return draw


def drawn_words(work: Path, code: str, texts: sources.Texts, *, south: bool) -> Draw:
    """Pseudo text of words by their frequency."""
    table = word_frequencies(work, code, texts)
    if south and code == "sr":
        table = {sources.latin(word): share for word, share in table.items()}
    return _drawn(table, masked=south)


def _drawn(table: dict[str, float], *, masked: bool) -> Draw:
    words, weights = list(table), np.array(list(table.values())) ** _FLAT
    if masked:
        weights[[bool(_MASKED.match(word)) for word in words]] = 0
    draw = _by_chance(words, weights, 7)
    return lambda length: " ".join(draw(max(3, length // 6)))


_STRAY = {"hr": 0.10, "sr": 0.22}
"""Share of the other language in a language's subtitles, by pairs such as djeca and deca, of which
a language has one."""
_LEFT = 0.02
"""Of a word's share, what is kept of it in a language that it seems to have strayed to."""


def speech(texts: Path) -> dict[str, dict[str, float]]:
    """Words and their frequency in subtitles, of Croatian and of Serbian."""
    heard = {code: language_texts.spoken(texts, code) for code in _STRAY}
    found: dict[str, dict[str, float]] = {code: {} for code in _STRAY}
    determinant = 1 - sum(_STRAY.values())
    for word in sorted(heard["hr"].keys() | heard["sr"].keys()):
        for code, other in (("hr", "sr"), ("sr", "hr")):
            share, beside = heard[code].get(word), heard[other].get(word)
            if share is None:  # too rare for the list: half of what strays there
                share = (beside or 0.0) * _STRAY[code] / 2
            if beside is None:
                beside = share * _STRAY[other] / 2
            own = ((1 - _STRAY[other]) * share - _STRAY[code] * beside) / determinant
            found[code][word] = max(own, share * _LEFT)
    return found


def drawn_counted(texts: Path) -> dict[str, list[Draw]]:
    """Pseudo text of words by their counts, of Croatian and of Serbian: in subtitles, and twice as
    much in news."""
    made = {}
    for code, heard in speech(texts).items():
        news = _drawn(language_texts.written(texts, code), masked=True)
        made[code] = [_drawn(heard, masked=True), news, news]
    return made


def word_frequencies(work: Path, code: str, texts: sources.Texts) -> dict[str, float]:
    """Words of a list and their share of all words; Serbian in Cyrillic letters."""
    kept = work / f"frequencies-{code}.json"
    if not kept.exists():
        shares = sources.runs(work, code)
        listed = sorted(w for w in sources.word_list(work, code, texts) if _known(w, shares))
        found = frequencies(listed, shares)
        kept.write_text(json.dumps(dict(zip(listed, found, strict=True)), ensure_ascii=False))
    table: dict[str, float] = json.loads(kept.read_text("utf-8"))
    return table


def _known(word: str, shares: dict[str, float]) -> bool:
    """Whether every run of letters in a word was met in text."""
    return len(word) <= 25 and all(
        word[at : at + size] in shares for size in range(1, 6) for at in range(len(word) - size + 1)
    )


def drawn_runs(work: Path, code: str) -> list[Draw]:
    """Pseudo text of runs of 3 to 5 letters, for a language without a word list."""
    if not (work / "lingua/lingua/language-models" / code).exists():
        return []
    shares = sources.runs(work, code)
    draws = []
    for size, every in ((5, 6), (4, 14), (3, 14)):
        grams = [gram for gram in shares if len(gram) == size]
        weights = np.array([shares[gram] for gram in grams])
        draws.append((_by_chance(grams, weights, size), every))
    return [lambda n: "  ".join(" ".join(d(max(1, n // every))) for d, every in draws)]


def whole_words(text: str) -> bool:
    """Whether the units of a pseudo text are words (two spaces mark runs)."""
    return "  " not in text


def used(found: Features, table: str) -> Any:
    """The features that a table looks at."""
    return np.concatenate(model.selected(found, table))


def inside(text: str, table: str, *, words: bool) -> Any:
    """Features of pseudo text: none reaches over two units; of runs, none touches an end."""
    return np.concatenate([_unit(unit, table, words) for unit in text.split()])


@lru_cache(maxsize=200_000)
def _unit(unit: str, table: str, words: bool) -> Any:
    found = features(f" {unit} ")
    if words:
        found = found._replace(pairs=found.pairs[:0])
    else:
        cut = tuple(run[1 : len(run) - 1] for run in found.runs[:5])
        found = Features((*cut, found.runs[5][:0]), found.words[:0], found.pairs[:0])
    return used(found, table)


def examples(
    table: str, classes: dict[str, list[Texts]], recipe: Recipe, seed: int
) -> tuple[Any, Any, Any]:
    """Buckets of all examples in one array, where each starts, and the class of each."""
    rng = random.Random(seed)
    members = [texts for group in classes.values() for texts in group]
    common = sorted(set.intersection(*(set(texts.packages) for texts in members)))
    buckets, starts, labels = [], [0], []
    for _ in range(recipe.each):
        for label, group in enumerate(classes.values()):
            texts = rng.choice(group)
            length = int(np.exp(rng.uniform(np.log(recipe.shortest), np.log(260))))
            text, drawn = texts.example(length, recipe, common)
            hashed = _hashed(text, table, drawn, rng, bare=rng.random() < recipe.bare)
            if len(hashed):
                buckets.append(model.buckets(hashed, table).astype(np.int32))
                starts.append(starts[-1] + len(hashed))
                labels.append(label)
    return np.concatenate(buckets), np.array(starts), np.array(labels)


def _hashed(text: str, table: str, drawn: bool, rng: random.Random, *, bare: bool) -> Any:
    if table in {"south", "native"} and not drawn:
        text = _MASKED.sub("", text)
        text = _NAME.sub("", text) if table == "native" and rng.random() < 0.5 else text
    text = text.translate(_PLAIN) if bare else text
    if drawn:
        return inside(text, table, words=whole_words(text))
    text = normalised(text)
    return used(features(text), table) if len(text) >= 6 else ()


def fit(
    data: tuple[Any, Any, Any], table: str, classes: int, recipe: Recipe, seed: int = 1
) -> tuple[Any, Any]:
    """Weights (buckets x classes) and biases.

    Adagrad, so that rare features learn as fast as common ones; no decay of weights, which under
    Adagrad would wipe the rare ones out; few epochs instead.
    """
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    flat, starts, labels = data
    weights = torch.nn.EmbeddingBag(1 << model.BITS[table], classes, mode="sum", sparse=True)
    torch.nn.init.zeros_(weights.weight)
    bias = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.Adagrad([weights.weight, bias], lr=recipe.rate)
    order = np.random.default_rng(seed)
    for epoch in range(recipe.epochs):
        losses, shuffled = [], order.permutation(len(labels))
        for at in range(0, len(labels), 512):
            batch = shuffled[at : at + 512]
            parts = [flat[starts[n] : starts[n + 1]] for n in batch]
            sizes = np.array([len(part) for part in parts])
            offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            sums = weights(
                torch.from_numpy(np.concatenate(parts)).long(), torch.from_numpy(offsets)
            )
            scores = sums * torch.from_numpy(sizes**-0.5).float()[:, None] + bias
            loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels[batch]))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
        print(f"{table} epoch {epoch}: loss {np.mean(losses):.4f}", flush=True)
    return weights.weight.detach().numpy(), bias.detach().numpy()


def averaged(table: str, classes: dict[str, list[Texts]], recipe: Recipe) -> tuple[Any, Any]:
    """Weights and biases: means over trainings on other draws of examples, in another order.

    Each is a process of its own: side by side, and none begins where another left its draws.
    """
    forked = multiprocessing.get_context("fork")

    def run(seed: int, end: Connection) -> None:
        data = examples(table, classes, recipe, seed)
        end.send(fit(data, table, len(classes), recipe, seed - 1))

    ends = []
    for seed in recipe.seeds:
        end, other = forked.Pipe(duplex=False)
        forked.Process(target=run, args=(seed, other)).start()
        other.close()  # so that the end of a process that failed is seen
        ends.append(end)
    weights, biases = zip(*(end.recv() for end in ends), strict=True)
    return np.mean(weights, axis=0), np.mean(biases, axis=0)


def packed(weights: Any, bias: Any) -> dict[str, Any]:
    """One signed byte a weight; sums of them are whole numbers, hence the same on any machine."""
    scale = float(np.quantile(np.abs(weights), 0.999)) / LEVELS
    small = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return {"weights": small, "bias": bias.astype(np.float32), "scale": np.float32(scale)}


LEVELS = 10
"""Weights are told apart by so many steps on each side: more say nothing new, and pack worse."""

RECIPES = {
    "south": Recipe(each=60_000, drawn=0.6, shared=0.6, shortest=24, bare=0.1, rate=0.2),
    "native": Recipe(
        each=120_000,
        running=0.3,
        drawn=0.6,
        shared=0.0,
        shortest=24,
        bare=0.07,
        rate=0.2,
        seeds=(2, 3, 4),
    ),
    "cyrillic": Recipe(each=20_000, drawn=0.5, shared=0.3, shortest=10, bare=0.0, rate=0.2),
    "latin": Recipe(each=6_000, drawn=0.5, shared=0.3, shortest=10, bare=0.05, rate=0.2),
}


@dataclass(frozen=True)
class Inputs:
    """`running`: text of the three neighbours; `counted`: words of it by their counts."""

    work: Path
    catalogues: sources.Texts
    running: sources.Texts
    counted: dict[str, list[Draw]]


def texts_of(inputs: Inputs, codes: Sequence[str], table: str) -> list[Texts]:
    """One `Texts` a language of a class."""
    rng, made = random.Random(3), []
    for code in codes:
        strings = {package: list(found) for package, found in inputs.catalogues[code].items()}
        if code == "sr" and table != "cyrillic":
            strings = {k: [sources.latin(s) for s in v] for k, v in strings.items()}
            for package, found in inputs.catalogues["sr@latin"].items():
                strings[package] = strings.get(package, []) + found
        strings = {k: [s for s in v if _fits(s, table)] for k, v in strings.items()}
        near = table != "cyrillic" and code in SOUTH
        if code in sources.WORD_LISTS:
            draws = [drawn_words(inputs.work, code, inputs.catalogues, south=near)]
        else:
            draws = drawn_runs(inputs.work, code)
        running: Strings = {}
        if table == "native":
            draws += inputs.counted.get(code, [])
            running = inputs.running[code]
        made.append(Texts(strings, draws, rng, running))
    return made


def _fits(text: str, table: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in letters) * 2 > len(letters)
    return cyrillic == (table == "cyrillic")


def _stored(table: str, weights: Any, bias: Any) -> tuple[Any, Any]:
    """Columns that are needed: a softmax takes no notice of what is added to all classes.

    Of Croatian and Serbian the log odds; of the three neighbours, centred on these two, the others.
    """
    if table == "native":
        return weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1]
    if table == "south":
        middle = weights[:, :2].mean(axis=1)[:, None]
        return (weights - middle)[:, 1:], bias[1:] - bias[:2].mean()
    return weights - weights.mean(axis=1)[:, None], bias


def train(inputs: Inputs, table: str) -> None:
    """Fit one table and put it into the model's file."""
    started, recipe, groups = time.monotonic(), RECIPES[table], GROUPS[table]
    classes = {code: texts_of(inputs, members, table) for code, members in groups.items()}
    weights, bias = averaged(table, classes, recipe)
    fitted = packed(*_stored(table, weights, bias))
    old = dict(np.load(model.FILE)) if model.FILE.exists() else {}
    old |= {f"{table}.{name}": value for name, value in fitted.items()}
    old[f"{table}.classes"] = np.array(list(classes))
    half = model.FILE.with_suffix(".half.npz")
    np.savez_compressed(half, **old)
    size = half.replace(model.FILE).stat().st_size
    print(f"{table}: {time.monotonic() - started:.0f} s, file {size}")


def main() -> None:
    """Fetch, train the tables, write the model."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--work", type=Path, required=True, help="packages are kept here")
    options.add_argument("--texts", type=Path, required=True, help="clones of the repositories")
    options.add_argument("--only", choices=sorted(RECIPES), action="append")
    given = options.parse_args()
    sources.fetch(given.work)
    catalogues = sources.catalogues(given.work)
    running = language_texts.running(given.texts, held=False)
    inputs = Inputs(given.work, catalogues, running, drawn_counted(given.texts))
    for table in given.only or RECIPES:
        train(inputs, table)


if __name__ == "__main__":
    main()
