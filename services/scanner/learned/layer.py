"""From a document to the passages that read like orders to a model."""

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from contracts.artifacts import HiddenText
from kernel.embedder.base import EmbedderError
from kernel.embedder.threads import usable_cpus
from services.scanner.learned.encoder import Encoder, Floats, Ids
from services.scanner.learned.model import Document, Model
from services.scanner.learned.reading import Piece, Texts, encoded_pieces, pieces

BLOCK = 2_048
"""Windows whose tokens are held at once."""

LOOKED_AT = 16
"""Times the windows that are read in full: so many more are read by the untuned layers."""

Passage = tuple[int | None, int, int]
"""Number of the hidden text (None: the text itself), first and last character."""


class Encodes(Protocol):
    """What the layer needs of an `Encoder`."""

    def tokens(self, texts: Sequence[str]) -> list[Ids]: ...
    def vectors(self, windows: Sequence[Ids]) -> Floats: ...
    def first_vectors(self, windows: Sequence[Ids]) -> Floats: ...
    def word_scores(self, direction: Floats) -> Floats: ...


class Layer:
    """Finds orders to a model. Several threads may call it: one works, the others wait."""

    def __init__(self, encoder: Encodes, model: Model, *, most: int, threads: int = 1) -> None:
        """Put the two steps together.

        Args:
            encoder: windows to vectors.
            model: vectors to scores.
            most: windows of a document that are read in full. Of a longer one the layers that are
                not tuned read `LOOKED_AT` times as many: those `most / 2` that look most like an
                order to them are read in full, and as many at even distances, which stand for the
                document. Where there are more even than that, the mean of each window's word
                vectors tells in the same way which of them those layers read.
            threads: for the arithmetic; they spin while they wait, so more than one is dear on
                busy cores.
        """
        self._encoder, self._model, self._most = encoder, model, most
        self._threads = min(threads, usable_cpus())
        self._words = encoder.word_scores(model.gate)
        self._lock = threading.Lock()

    def passages(self, text: str, hidden: Sequence[HiddenText] = ()) -> list[Passage]:
        """The passages of a document that are taken for orders, in order."""
        from threadpoolctl import threadpool_limits

        texts: Texts = {None: text} | {i: h.text for i, h in enumerate(hidden)}
        meta = {i for i, h in enumerate(hidden) if h.kind == "metadata"}
        everything = list(pieces(texts))
        own = [piece for piece in everything if piece.hidden not in meta]
        # A file's name is no part of what it says: beside it a single sentence is off its subject.
        # Nor is what is encoded, which may say the same again.
        beside = [piece for piece in everything if piece.hidden in meta]
        beside += encoded_pieces(texts)
        found = own + beside
        if not found:
            return []
        with self._lock, threadpool_limits(self._threads, user_api="blas"):
            document, rows = self._read(texts, found, len(own) or len(found))
            orders = {int(rows[row]) for row, margin in self._model.judge(document) if margin >= 0}
        return list(dict.fromkeys(_bare(texts, found[i]) for i in sorted(orders)))

    def _read(
        self, texts: Texts, found: Sequence[Piece], own: int
    ) -> tuple[Document, NDArray[np.int64]]:
        """The first `own` of them make up the document; the others are judged beside it."""
        rows, sample = self._chosen(texts, found)
        read = [found[i] for i in rows.tolist()]
        said = [piece.said(texts) for piece in read]
        document = Document(
            vectors=self._encoder.vectors(self._encoder.tokens(said)),
            numbers=rows + (rows >= own),
            total=own,
            alone=np.array([piece.alone for piece in read]),
            lengths=np.array(list(map(len, said))),
            sample=sample & (rows < own),
        )
        return document, rows

    def _chosen(
        self, texts: Texts, found: Sequence[Piece]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Numbers of the pieces to read in full, and which of them stand for the document."""
        rows = np.arange(len(found))
        if len(found) > self._most * LOOKED_AT:
            rows, _ = chosen(
                np.concatenate(list(self._looks(texts, found))), self._most * LOOKED_AT
            )
        if len(found) <= self._most:
            return rows, np.ones(len(rows), dtype=np.bool_)
        said = [found[i].said(texts) for i in rows.tolist()]
        first = self._encoder.first_vectors(self._encoder.tokens(said))
        full, stand = chosen(self._model.looks(first), self._most)
        return rows[full], stand

    def _looks(self, texts: Texts, found: Sequence[Piece]) -> Iterator[Floats]:
        """A rough score of every piece, a block at a time."""
        for start in range(0, len(found), BLOCK):
            block = [p.said(texts) for p in islice(found, start, start + BLOCK)]
            tokens = self._encoder.tokens(block)
            sizes = np.array([len(t) for t in tokens])
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            sums = np.add.reduceat(self._words[np.concatenate(tokens)], starts)
            yield np.round(sums / sizes, 4).astype(np.float32)


def chosen(looks: Floats, most: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of the `most` windows to read: half by their looks, half at even distances.

    The second array says which are those at even distances. Of no more than `most` windows all.
    """
    total = len(looks)
    if total <= most:
        return np.arange(total), np.ones(total, dtype=np.bool_)
    half = most // 2
    even = np.unique(np.linspace(0, total - 1, half).round().astype(np.int64))
    striking = np.argsort(-looks, kind="stable")[: most - half]
    rows = np.union1d(even, striking)
    return rows, np.isin(rows, even)


def open_layer(
    *, most: int, threads: int, model: Model, layers: Sequence[int], made_for: str
) -> Layer:
    """Load everything: about two seconds, 380 MB.

    Raises:
        EmbedderError: the weights of the embedder are missing, or others than the model was
            trained on.
    """
    encoder = Encoder(layers, model.adapter)
    if encoder.model_id != made_for:
        raise EmbedderError(f"the learned layer was trained on {made_for}, not {encoder.model_id}")
    return Layer(encoder, model, most=most, threads=threads)


def _bare(texts: Texts, piece: Piece) -> Passage:
    """Where a piece stands, without the blank around it: a person is shown it."""
    text = texts[piece.hidden][piece.start : piece.end]
    blank = len(text) - len(text.lstrip())
    return piece.hidden, piece.start + blank, piece.start + len(text.rstrip())
