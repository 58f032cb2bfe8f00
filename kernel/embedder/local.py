"""Any sentence-transformers model on this machine: BGE-M3, the bundled one, a folder."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kernel.embedder.base import EmbedderError, Matrix, Vector, unit_rows
from kernel.embedder.threads import prepare_torch
from kernel.embedder.tokens import HuggingFaceTokens

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SAMPLE = 1 << 16
SAMPLES = 64
"""Pieces of a weight file that are hashed: reading gigabytes at every start would take seconds."""


@dataclass(frozen=True)
class LocalModel:
    """What to load and how to use it; all of it is part of the model id.

    `query_prompt`, `document_prompt`: text before every input; None takes the model's own prompts
    (`query`, `document` or `passage`), or none at all. `max_tokens` 0 takes the model's own.
    """

    name: str
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_tokens: int = 0
    revision: str | None = None
    device: str = "cpu"
    threads: int = 0
    batch_size: int = 8
    label: str | None = None
    """Takes the place of the name and fingerprint in the model id: for weights known by build."""


class SentenceTransformerEmbedder:
    """Loads in the constructor (seconds), encodes in one worker thread, fp32.

    Raises:
        EmbedderError: no such model here.
    """

    def __init__(self, model: LocalModel) -> None:
        threads = prepare_torch(model.threads)
        self._model = _load(model)
        self._tokens = _own_tokenizer(self._model)
        own = {k: v for k, v in self._model.prompts.items() if v}
        self._query_prompt = _first(model.query_prompt, own.get("query"))
        self._document_prompt = _first(
            model.document_prompt, own.get("document"), own.get("passage")
        )
        if model.max_tokens:
            self._model.max_seq_length = model.max_tokens
        self._dim = _dimension(self._model)
        self._batch_size = model.batch_size
        self._model_id = f"{model.label or _fingerprint(model, self._model)}#{self._options()}"
        self._worker = ThreadPoolExecutor(
            1, thread_name_prefix="embedder", initializer=prepare_torch, initargs=(threads,)
        )

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def max_tokens(self) -> int:
        prompt = max(map(self._tokens.count, (self._query_prompt, self._document_prompt)))
        special = int(self._model.tokenizer.num_special_tokens_to_add())
        return _sequence(self._model) - special - prompt

    def count_tokens(self, text: str) -> int:
        return self._tokens.count(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return await self._run(list(texts), self._document_prompt)

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = (await self._run([text], self._query_prompt))[0]
        return vector

    async def aclose(self) -> None:
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    async def _run(self, texts: list[str], prompt: str) -> Matrix:
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)
        work = partial(self._encode, texts, prompt)
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _encode(self, texts: list[str], prompt: str) -> Matrix:
        limit = _sequence(self._model)
        vectors = self._model.encode(
            # what is far beyond the limit need not be tokenized in full
            [self._tokens.cut(text, limit) for text in texts],
            prompt=prompt,
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
        return unit_rows(vectors, self._dim)

    def _options(self) -> str:
        """Eight digits that change with whatever else changes the vectors."""
        options = (self._query_prompt, self._document_prompt, _sequence(self._model), self._dim)
        return hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]


def _first(*values: str | None) -> str:
    return next((value for value in values if value is not None), "")


def _load(model: LocalModel) -> "SentenceTransformer":
    looks_like_path = model.name.startswith(("/", ".", "~"))
    folder = Path(model.name).expanduser()
    if looks_like_path and not (folder / "config.json").is_file():
        raise EmbedderError(f"KB_EMBEDDER: there is no model in the folder {folder}")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        loaded = SentenceTransformer(
            str(folder) if folder.is_dir() else model.name,
            device=model.device,
            revision=model.revision,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise EmbedderError(
            f"cannot load the model {model.name} ({type(error).__name__}): give KB_EMBEDDER a "
            "folder with a sentence-transformers model, or a name that is in the local hub cache "
            "or can be downloaded; KB_EMBEDDER=bundled needs no download"
        ) from error
    return loaded.float().eval()


def _own_tokenizer(model: "SentenceTransformer") -> HuggingFaceTokens:
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EmbedderError("the model has no fast tokenizer (tokenizer.json)")
    return HuggingFaceTokens(Tokenizer.from_str(backend.to_str()))


def _sequence(model: "SentenceTransformer") -> int:
    return int(model.max_seq_length or 512)


def _dimension(model: "SentenceTransformer") -> int:
    dim = model.get_embedding_dimension()
    if dim is None:
        raise EmbedderError("the model does not say how long its vectors are")
    return int(dim)


def _fingerprint(model: LocalModel, loaded: "SentenceTransformer") -> str:
    """`name@hash`: the hub's commit, or a hash of the folder."""
    folder = Path(model.name).expanduser()
    if folder.is_dir():
        return f"{folder.resolve().name}@{_folder_hash(folder)}"
    commit = getattr(loaded.config, "_commit_hash", None)
    return f"{model.name}@{(commit or model.revision or 'unknown')[:12]}"


def _folder_hash(folder: Path) -> str:
    """Over small files in full and samples of large ones: trainings differ nearly everywhere."""
    digest = hashlib.sha256()
    for path in sorted(
        p for p in folder.rglob("*") if p.suffix in {".json", ".safetensors", ".bin"}
    ):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)}:{size}\n".encode())
        with path.open("rb") as handle:
            for start in range(0, size, max(SAMPLE, size // SAMPLES)):
                handle.seek(start)
                digest.update(handle.read(SAMPLE))
    return digest.hexdigest()[:12]
