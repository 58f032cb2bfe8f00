"""Train the language model: `python -m eval.train_language --work DIR`.

Writes `kernel/language/model.npz`; the table of words beside it is made by `eval.language_words`.
Needs `apt-get` and `pip` as clients, `tesseract-ocr`, scipy, torch and brotli; about half an hour
on one core. Sources and their licences: see
`eval/language_sources.py`. Nothing of `../shared/evaldata` and no treebank is read here: those are
for checking (`python -m eval.language`).

Method: multinomial logistic regression over hashed runs of characters and words, three tables:

* `latin` and `cyrillic`: which language, Bosnian, Croatian and Serbian in Latin script being one;
* `south`: which of those three. Names of the countries, peoples and capitals are masked, so that a
  text is not taken for Croatian because it speaks of Croatia.

Each example is a piece of 10 to 260 characters, either of catalogue strings or of words drawn by
their frequency in news and web text. Those frequencies are not to be had as such for Serbian in
Latin script; they are solved for: which frequencies of the words of a list explain the known
frequencies of runs of letters (Richardson 1972, Lucy 1974: multiplicative updates, never negative).
A tenth of the South Slavic examples has lost its diacritics, as people write.
"""

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from eval import language_sources as sources
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
    "south": {code: (code,) for code in SOUTH}, "latin": LATIN, "cyrillic": CYRILLIC,
}  # fmt: skip
MASK = r"(?:hrvat|srb|srp|bosn|bosan|bošnj|herceg|zagreb|beograd|sarajev|jugoslav)"
_MASKED = re.compile(rf"\b{MASK}\w*", re.IGNORECASE)
_PLAIN = str.maketrans("čćžšđČĆŽŠĐ", "cczsdCCZSD")
_FLAT = 0.85
"""Exponent over word frequencies: rare words are seen somewhat more often than in life."""


@dataclass(frozen=True)
class Recipe:
    """`drawn`: share of examples that are drawn words; `shared`: of the rest, the share that comes
    from packages which all classes have; `each`: examples a class."""

    each: int
    drawn: float
    shared: float
    shortest: int
    bare: float
    rate: float
    epochs: int = 2


class Texts:
    """Examples of one language."""

    def __init__(
        self, strings: dict[str, list[str]], draw: Callable[[int], str] | None, rng: random.Random
    ) -> None:
        self.packages = {k: v for k, v in strings.items() if sum(map(len, v)) > 4_000}
        self.draw, self.rng = draw, rng
        self._names = sorted(self.packages)
        weights = [sum(map(len, self.packages[name])) ** 0.5 for name in self._names]
        self._weights = weights

    def piece(self, length: int, packages: Sequence[str] | None = None) -> str:
        """About `length` characters of one package, cut between words."""
        rng = self.rng
        name = rng.choice(packages) if packages else rng.choices(self._names, self._weights)[0]
        strings = self.packages[name]
        at, step = rng.randrange(len(strings)), 1 if rng.random() < 0.7 else 7919
        text = ""
        while len(text) < length:
            text += strings[at % len(strings)] + " "
            at += step
        start = rng.randrange(len(text) - length + 1)
        cut = text[start : start + length]
        if start:
            cut = cut[cut.find(" ") + 1 :]
        return cut[: cut.rfind(" ")] if " " in cut else cut


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


def drawn_words(
    work: Path, code: str, texts: sources.Texts, *, south: bool
) -> Callable[[int], str]:
    """Pseudo text of words by their frequency."""
    table = word_frequencies(work, code, texts)
    words, weights = list(table), np.array(list(table.values())) ** _FLAT
    if south:
        words = [sources.latin(word) for word in words] if code == "sr" else words
        weights[[bool(_MASKED.match(word)) for word in words]] = 0
    draw = _by_chance(words, weights, 7)
    return lambda length: " ".join(draw(max(3, length // 6)))


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


def drawn_runs(work: Path, code: str) -> Callable[[int], str] | None:
    """Pseudo text of runs of 3 to 5 letters, for a language without a word list."""
    if not (work / "lingua/lingua/language-models" / code).exists():
        return None
    shares = sources.runs(work, code)
    draws = []
    for size, every in ((5, 6), (4, 14), (3, 14)):
        grams = [gram for gram in shares if len(gram) == size]
        weights = np.array([shares[gram] for gram in grams])
        draws.append((_by_chance(grams, weights, size), every))
    return lambda n: "  ".join(" ".join(d(max(1, n // every))) for d, every in draws)


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
            bare = rng.random() < recipe.bare
            if texts.draw is not None and rng.random() < recipe.drawn:
                text = texts.draw(length)
                hashed = inside(
                    text.translate(_PLAIN) if bare else text, table, words=whole_words(text)
                )
            else:
                shared = common if common and rng.random() < recipe.shared else None
                text = (
                    _MASKED.sub("", texts.piece(length, shared))
                    if table == "south"
                    else (texts.piece(length, shared))
                )
                text = normalised(text.translate(_PLAIN) if bare else text)
                if len(text) < 6:
                    continue
                hashed = used(features(text), table)
            if len(hashed):
                buckets.append(model.buckets(hashed, table).astype(np.int32))
                starts.append(starts[-1] + len(hashed))
                labels.append(label)
    return np.concatenate(buckets), np.array(starts), np.array(labels)


def fit(data: tuple[Any, Any, Any], table: str, classes: int, recipe: Recipe) -> tuple[Any, Any]:
    """Weights (buckets x classes) and biases.

    Adagrad, so that rare features learn as fast as common ones; no decay of weights, which under
    Adagrad would wipe the rare ones out; few epochs instead.
    """
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    flat, starts, labels = data
    weights = torch.nn.EmbeddingBag(1 << model.BITS[table], classes, mode="sum", sparse=True)
    torch.nn.init.zeros_(weights.weight)
    bias = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.Adagrad([weights.weight, bias], lr=recipe.rate)
    order = np.random.default_rng(1)
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


def packed(weights: Any, bias: Any, classes: Sequence[str]) -> dict[str, Any]:
    """One signed byte a weight; sums of them are whole numbers, hence the same on any machine.

    A softmax takes no notice of what is added to all classes, so each row is centred: on Croatian
    and Serbian for the three neighbours, which leaves one of them to be stored.
    """
    south = list(classes) == list(SOUTH)
    middle = weights[:, :2].mean(axis=1) if south else weights.mean(axis=1)
    weights = weights - middle[:, None]
    if south:
        bias = bias - bias[:2].mean()
        weights, bias = weights[:, 1:], bias[1:]
    scale = float(np.quantile(np.abs(weights), 0.999)) / LEVELS
    small = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return {"weights": small, "bias": bias.astype(np.float32), "scale": np.float32(scale)}


LEVELS = 10
"""Weights are told apart by so many steps on each side: more say nothing new, and pack worse."""

RECIPES = {
    "south": Recipe(each=60_000, drawn=0.6, shared=0.6, shortest=24, bare=0.1, rate=0.2),
    "cyrillic": Recipe(each=20_000, drawn=0.5, shared=0.3, shortest=10, bare=0.0, rate=0.2),
    "latin": Recipe(each=6_000, drawn=0.5, shared=0.3, shortest=10, bare=0.05, rate=0.2),
}


def texts_of(
    work: Path, codes: Sequence[str], table: str, catalogues: sources.Texts
) -> list[Texts]:
    """One `Texts` a language of a class."""
    rng, made = random.Random(3), []
    for code in codes:
        strings = {package: list(found) for package, found in catalogues[code].items()}
        if code == "sr" and table != "cyrillic":
            strings = {k: [sources.latin(s) for s in v] for k, v in strings.items()}
            for package, found in catalogues["sr@latin"].items():
                strings[package] = strings.get(package, []) + found
        strings = {k: [s for s in v if _fits(s, table)] for k, v in strings.items()}
        if code in sources.WORD_LISTS:
            draw = drawn_words(work, code, catalogues, south=table != "cyrillic" and code in SOUTH)
        else:
            draw = drawn_runs(work, code)  # type: ignore[assignment]
        made.append(Texts(strings, draw, rng))
    return made


def _fits(text: str, table: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in letters) * 2 > len(letters)
    return cyrillic == (table == "cyrillic")


def main() -> None:
    """Fetch, train the tables, write the model."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--work", type=Path, required=True, help="packages are kept here")
    options.add_argument("--only", choices=sorted(RECIPES), action="append")
    given = options.parse_args()
    sources.fetch(given.work)
    catalogues = sources.catalogues(given.work)
    for table in given.only or RECIPES:
        started, recipe = time.monotonic(), RECIPES[table]
        groups = GROUPS[table]
        classes = {
            c: texts_of(given.work, members, table, catalogues) for c, members in groups.items()
        }
        data = examples(table, classes, recipe, seed=2)
        fitted = packed(*fit(data, table, len(classes), recipe), list(classes))
        old = dict(np.load(model.FILE)) if model.FILE.exists() else {}
        old |= {f"{table}.{name}": value for name, value in fitted.items()}
        old[f"{table}.classes"] = np.array(list(classes))
        np.savez_compressed(model.FILE, **old)
        size = model.FILE.stat().st_size
        print(f"{table}: {len(data[2])} examples, {time.monotonic() - started:.0f} s, file {size}")


if __name__ == "__main__":
    main()
