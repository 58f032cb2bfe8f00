"""From settings to an embedder, or to all those of a process."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.embedder.base import Embedder, EmbedderError
from kernel.embedder.registry import Embedders, Load
from kernel.embedder.settings import EmbedderSettings, EmbedderSpec
from kernel.embedder.tokens import EstimatedTokens, HuggingFaceTokens, TokenCounter

if TYPE_CHECKING:
    from kernel.embedder.queue import Turnstile

PLAIN = "bundled-plain"
"""The bundled model with the language in its vectors, as it was before it was taken out: for the
bases that have such vectors, until they are rebuilt. It is the same model in memory."""
REMOTE_TOKENS = 8192
"""What BGE-M3 reads, and most models behind an endpoint."""


def load_embedders(settings: EmbedderSettings | None = None) -> Embedders:
    """The embedders of this process; local ones take turns with each other. Raises as
    `load_embedder`, of the default; further ones are loaded later."""
    from kernel.embedder.queue import Turnstile

    settings, turns = settings or EmbedderSettings(), Turnstile()
    others: dict[str, Load] = {
        name: partial(load_embedder, settings.of(spec), turns)
        for name, spec in settings.embedders.items()
    }
    if _is_neutral(settings):
        model = _model(settings)
        others.setdefault(PLAIN, lambda: _queued(model, settings, turns))
        return Embedders(_queued(_neutral(model), settings, turns), others)
    if any(_is_neutral(settings.of(spec)) for spec in settings.embedders.values()):
        plain = settings.of(EmbedderSpec(embedder_neutral=False))
        others.setdefault(PLAIN, partial(load_embedder, plain, turns))
    return Embedders(load_embedder(settings, turns), others)


def load_embedder(
    settings: EmbedderSettings | None = None, turns: "Turnstile | None" = None
) -> Embedder:
    """An embedder, ready to be shared. Takes seconds: call it off the event loop.

    Args:
        settings: which; those of the environment, if it is not said.
        turns: of the models that share the processor.

    Raises:
        EmbedderError: it cannot be had as configured; the message says what to do.
        kernel.errors.Retry: the endpoint must be asked for its dimension, and is away.
    """
    settings = settings or EmbedderSettings()
    if settings.embeddings_url:
        return _remote(settings, settings.embeddings_url)
    model = _model(settings)
    return _queued(_neutral(model) if _is_neutral(settings) else model, settings, turns)


def _queued(embedder: Embedder, settings: EmbedderSettings, turns: "Turnstile | None") -> Embedder:
    from kernel.embedder.queue import QueuedEmbedder

    return QueuedEmbedder(embedder, settings.embed_batch_tokens, turns)


def _is_neutral(settings: EmbedderSettings) -> bool:
    """Only of the bundled model it is known which directions are its languages."""
    bundled = settings.embedder == "bundled" and not settings.embeddings_url
    return bundled and settings.embedder_neutral


def _neutral(model: Embedder) -> Embedder:
    from kernel.embedder.neutral import NeutralEmbedder, bundled_basis

    return NeutralEmbedder(model, bundled_basis())


def _model(settings: EmbedderSettings) -> Embedder:
    if settings.embedder == "hashed":
        from kernel.embedder.hashed import HASHED_DIM, HASHED_TOKENS, HashedEmbedder

        return HashedEmbedder(
            settings.embeddings_dim or HASHED_DIM, settings.embedder_max_tokens or HASHED_TOKENS
        )
    from kernel.embedder.local import LocalModel, SentenceTransformerEmbedder

    name, label = settings.embedder, None
    if name == "bundled":
        from kernel.embedder.bundled import bundled_label, ensure_bundled

        folder = ensure_bundled(settings.model_cache)
        name, label = str(folder), bundled_label(folder)
    return SentenceTransformerEmbedder(
        LocalModel(
            name,
            query_prompt=settings.embedder_query_prompt,
            document_prompt=settings.embedder_document_prompt,
            max_tokens=settings.embedder_max_tokens,
            revision=settings.embedder_revision,
            device=settings.torch_device,
            threads=settings.torch_threads,
            label=label,
        )
    )


def _remote(settings: EmbedderSettings, url: str) -> Embedder:
    from kernel.embedder.remote import Endpoint, RemoteEmbedder, probe_dim

    key = settings.embeddings_key
    endpoint = Endpoint(
        url,
        settings.embeddings_model,
        settings.embeddings_api,
        api_key=key.get_secret_value() if key else None,
        query_prompt=settings.embedder_query_prompt or "",
        document_prompt=settings.embedder_document_prompt or "",
        timeout_seconds=settings.embeddings_timeout_seconds,
        batch_size=settings.embeddings_batch_size,
    )
    return RemoteEmbedder(
        endpoint,
        dim=settings.embeddings_dim or probe_dim(endpoint),
        max_tokens=settings.embedder_max_tokens or REMOTE_TOKENS,
        tokens=_remote_tokens(settings),
    )


def _remote_tokens(settings: EmbedderSettings) -> TokenCounter:
    """The endpoint's tokenizer, as far as it is known here."""
    name = settings.embeddings_tokenizer
    if name == "estimate":
        return EstimatedTokens()
    if name == "bundled":
        from kernel.embedder.bundled import ensure_bundled

        return HuggingFaceTokens.from_file(ensure_bundled(settings.model_cache) / "tokenizer.json")
    if not Path(name).is_file():
        raise EmbedderError(f"KB_EMBEDDINGS_TOKENIZER: no such file: {name}")
    return HuggingFaceTokens.from_file(Path(name))
