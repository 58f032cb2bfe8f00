"""Trains the first step of the learned layer: what in a single window reads like an order.

Low-rank changes (LoRA, Hu et al., 2021) of the weights of some of the embedder's layers, and a
direction in their mean states for each score. torch is needed only here: what is shipped is added
to the weights when the scanner loads them.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from services.scanner.learned.encoder import MOST_TOKENS, Adapter

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float32]
Ids = list[int]

MEANS = (2, 4, 12)
"""Layers whose mean states make up a vector: two that stay as they are, and the last one."""

FROZEN, LAYERS = MEANS[-2:]
"""Layers that stay as they are, and layers in all."""

RANK = 8
SCALE = 2.0
"""Of the changes, while they are trained."""

RATE, HEAD_RATE = 1e-3, 3e-3
WARM = 100
"""Steps until the full rate, which then falls evenly to nearly nothing."""

BATCH_TOKENS = 3_000
ORDERS_WEIGH = 1 / 3
"""Share of the orders in the loss."""

NEAR = 1.5
"""Weight of a window that looks like an order and is none."""

DROPPED = 0.05
"""Share of what a tuned layer says that is left out by chance: against learning by heart."""

DISGUISED = 0.15
"""Share of the windows that are read in another dress each round."""

HARDEST, OTHERS = 8_000, 24_000
"""Windows of honest documents that a round reads: those that looked most like orders after the
round before, and as many others by chance."""

_NAMES = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
    "attention.output.dense": "ao", "intermediate.dense": "fi", "output.dense": "fo",
}  # fmt: skip


@dataclass(frozen=True)
class Example:
    """Windows of which one, it is not known which, reads like what the labels say.

    labels: one for each score, 1, or nan where nothing is known.
    """

    windows: tuple[str, ...]
    labels: tuple[float, ...]


@dataclass(frozen=True)
class _Round:
    """Windows as tokens; labels, shape (n, scores); weights, shape (n,)."""

    ids: list[Ids]
    labels: Floats
    weights: Floats


class _Lessons:
    """What each round reads."""

    def __init__(
        self, orders: Sequence[Example], near: Sequence[str], honest: Sequence[str], scores: int
    ) -> None:
        self.rng = random.Random(0)
        self._orders, self._near, self._honest = orders, near, honest
        self._none = (0.0,) * scores
        self._known: list[int | None] = [None] * len(orders)
        self._hardest: list[str] = []

    def of_round(self) -> _Round:
        """Orders by the window that was found to be one, and harmless windows."""
        chosen = [
            (window, order.labels, 1.0 if known is not None else 1 / len(order.windows))
            for order, known in zip(self._orders, self._known, strict=True)
            for number, window in enumerate(order.windows)
            if known in (None, number)
        ]
        some = self.rng.sample(self._honest, min(OTHERS, len(self._honest)))
        plain = list(dict.fromkeys([*self._hardest, *some]))
        harmless = [NEAR] * len(self._near) + [1.0] * len(plain)
        weights = np.array([w for _, _, w in chosen] + harmless, np.float32)
        ours = weights[: len(chosen)]
        ours *= sum(harmless) / ours.sum() * ORDERS_WEIGH / (1 - ORDERS_WEIGH)
        texts = [*(t for t, _, _ in chosen), *self._near, *plain]
        labels = [y for _, y, _ in chosen] + [self._none] * len(harmless)
        return _Round(
            _tokens([_dressed(t, self.rng) for t in texts]),
            np.array(labels, np.float32),
            weights / weights.mean(),
        )

    def look(self, score: Callable[[Sequence[str]], Floats]) -> None:
        """Find the window of each order that reads most like one, and the hardest honest ones."""
        scores = score([w for order in self._orders for w in order.windows])
        ends = np.cumsum([len(order.windows) for order in self._orders])
        self._known = [
            int(np.argmax(scores[end - len(order.windows) : end]))
            for end, order in zip(ends, self._orders, strict=True)
        ]
        hardest = np.argsort(-score(self._honest), kind="stable")[:HARDEST]
        self._hardest = [self._honest[i] for i in hardest]


class Tuned:
    """The trained network. Vectors are the mean states of the layers `MEANS`."""

    def __init__(self, scores: int) -> None:
        import torch

        self._net = _network(scores)
        self._torch = torch

    def fit(
        self,
        orders: Sequence[Example],
        near: Sequence[str],
        honest: Sequence[str],
        rounds: int,
    ) -> None:
        """Train in place.

        Args:
            orders: what is to be found.
            near: windows that look like orders and are none, and others that are always read.
            honest: windows of honest documents, of which some are read.
            rounds: times that everything is read.
        """
        lessons = _Lessons(orders, near, honest, self._net.head.out_features)
        trained = [p for p in self._net.parameters() if p.requires_grad]
        head = list(self._net.head.parameters())
        others = [p for p in trained if not any(p is h for h in head)]
        optimiser = self._torch.optim.AdamW(
            [{"params": others}, {"params": head}], lr=RATE, weight_decay=0.01
        )
        began = time.monotonic()
        for number in range(rounds):
            round_ = lessons.of_round()
            batches = _batches([len(i) for i in round_.ids], lessons.rng)
            self._net.train()
            total = 0.0
            for at, batch in enumerate(batches):
                done = (number + at / len(batches)) / rounds
                warm = 1.0 if number else min(1.0, at / WARM)
                for group, full in zip(optimiser.param_groups, (RATE, HEAD_RATE), strict=True):
                    group["lr"] = full * warm * max(0.02, 1 - done)
                loss = self._loss(
                    [round_.ids[i] for i in batch], round_.labels[batch], round_.weights[batch]
                )
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self._torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimiser.step()
                total += float(loss.detach())
            _tell(
                f"round {number + 1} of {rounds}: {len(round_.ids)} windows, "
                f"loss {total / len(batches):.4f}",
                began,
            )
            if number + 1 < rounds:
                lessons.look(lambda texts: self.read(texts)[0].max(1))

    def _loss(self, ids: Sequence[Ids], labels: Floats, weight: Floats) -> "Tensor":
        torch = self._torch
        wanted = torch.tensor(labels)
        with torch.autocast("cpu", torch.bfloat16):
            logits, _ = self._net(*_padded(ids))
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            logits.float(), wanted.nan_to_num(0), reduction="none"
        )
        found: Tensor = (losses * ~wanted.isnan() * torch.tensor(weight)[:, None]).sum() / len(ids)
        return found

    def read(self, texts: Sequence[str]) -> tuple[Floats, NDArray[np.float16]]:
        """Scores, shape (n, scores), and vectors, shape (n, dim)."""
        torch, net = self._torch, self._net
        net.eval()
        ids = _tokens(texts)
        scores = np.empty((len(ids), net.head.out_features), np.float32)
        vectors = np.empty((len(ids), len(MEANS) * net.head.in_features), np.float16)
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            for batch in _batches([len(i) for i in ids], random.Random(0)):
                logits, states = net(*_padded([ids[i] for i in batch]))
                scores[batch] = logits.float().numpy()
                vectors[batch] = states.float().numpy()
        return scores, vectors

    @property
    def head(self) -> tuple[Floats, Floats]:
        """Directions in a vector, shape (scores, dim), and biases, shape (scores,)."""
        weight = self._net.head.weight.detach().numpy()
        bias: Floats = self._net.head.bias.detach().numpy()
        return np.concatenate([np.zeros_like(weight)] * (len(MEANS) - 1) + [weight], axis=1), bias

    @property
    def adapter(self) -> Adapter:
        """The changes by the names of the encoder's matrices."""
        return {
            f"l{number}.{short}": self._net.change(number, name)
            for number in range(FROZEN, LAYERS)
            for name, short in _NAMES.items()
        }


def _network(scores: int) -> Any:
    import torch
    from torch import nn
    from transformers import BertModel, logging

    from kernel.embedder.bundled import ensure_bundled

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(0)

    class Changed(nn.Module):
        """A dense step and its change."""

        def __init__(self, dense: Any) -> None:
            super().__init__()
            self.dense = dense
            spread = dense.in_features**-0.5
            self.down = nn.Parameter(torch.randn(RANK, dense.in_features) * spread)
            self.up = nn.Parameter(torch.zeros(dense.out_features, RANK))

        def forward(self, x: "Tensor") -> "Tensor":
            found: Tensor = self.dense(x) + (x @ self.down.T) @ self.up.T * SCALE
            return found

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert: Any = BertModel.from_pretrained(
                ensure_bundled(), num_hidden_layers=LAYERS, add_pooling_layer=False,
                hidden_dropout_prob=DROPPED, attention_probs_dropout_prob=0.0,
            ).requires_grad_(False)  # fmt: skip
            for part in (self.bert.embeddings, *self.bert.encoder.layer[:FROZEN]):
                for dropout in (m for m in part.modules() if isinstance(m, nn.Dropout)):
                    dropout.p = 0.0
            for number in range(FROZEN, LAYERS):
                for name in _NAMES:
                    path = f"encoder.layer.{number}.{name}"
                    self.bert.set_submodule(path, Changed(self.bert.get_submodule(path)))
            self.drop = nn.Dropout(0.1)
            self.head = nn.Linear(self.bert.config.hidden_size, scores)

        def forward(self, ids: "Tensor", mask: "Tensor") -> "tuple[Tensor, Tensor]":
            """Logits and vectors."""
            states = self.bert(
                input_ids=ids, attention_mask=mask, output_hidden_states=True
            ).hidden_states
            inside = mask.unsqueeze(-1).to(states[0].dtype)
            means = [(states[i] * inside).sum(1) / inside.sum(1) for i in MEANS]
            return self.head(self.drop(means[-1].float())), torch.cat(means, dim=1)

        def change(self, number: int, name: str) -> tuple[Floats, Floats]:
            changed = self.bert.get_submodule(f"encoder.layer.{number}.{name}")
            down, up = changed.down.detach().numpy(), changed.up.detach().numpy()
            return down.T.copy(), up.T * np.float32(SCALE)

    return Network()


def _tokens(texts: Sequence[str]) -> list[Ids]:
    from kernel.embedder.bundled import bundled_tokenizer, bundled_weights
    from kernel.embedder.q4file import Q4File

    tokenizer = bundled_tokenizer(Q4File(bundled_weights()).vocabulary)
    tokenizer.enable_truncation(MOST_TOKENS)
    return [found.ids for found in tokenizer.encode_batch(list(texts))]


def _padded(ids: Sequence[Ids]) -> "tuple[Tensor, Tensor]":
    """Numbers and mask, shape (n, length) each."""
    import torch

    longest = max(map(len, ids))
    numbers = torch.ones((len(ids), longest), dtype=torch.long)
    mask = torch.zeros((len(ids), longest), dtype=torch.long)
    for row, window in enumerate(ids):
        numbers[row, : len(window)] = torch.tensor(window)
        mask[row, : len(window)] = 1
    return numbers, mask


def _batches(lengths: Sequence[int], rng: random.Random) -> list[list[int]]:
    """Windows of nearly equal length together, in any order."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + rng.random() * 4)
    found: list[list[int]] = [[]]
    for i in order:
        longest = max([lengths[i], *(lengths[j] for j in found[-1][-8:])])
        if found[-1] and longest * (len(found[-1]) + 1) > BATCH_TOKENS:
            found.append([])
        found[-1].append(i)
    rng.shuffle(found)
    return found


_MARKS = ("- ", "* ", "> ", "# ", "## ", "// ", "| ", "1. ", "a) ", "**", "NB: ", '"', "[ ] ")


def _dressed(text: str, rng: random.Random) -> str:
    """The text, now and then in other letters, behind a mark, or with a slip of the hand."""
    if rng.random() >= DISGUISED:
        return text
    match rng.randrange(5):
        case 0:
            return text.upper()
        case 1:
            return text.lower()
        case 2:
            at = rng.randrange(len(text))
            return text[:at] + text[at + 1 :]
        case _:
            return rng.choice(_MARKS) + text


def _tell(said: str, began: float) -> None:
    print(f"  {said}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
