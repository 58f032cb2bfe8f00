"""Text to vectors: one seam, local models, endpoints, and a stand-in without a model."""

from kernel.embedder.base import Embedder, EmbedderError, Matrix, Vector
from kernel.embedder.bundled import ensure_bundled
from kernel.embedder.hashed import HashedEmbedder
from kernel.embedder.load import load_embedder, load_embedders
from kernel.embedder.local import LocalModel, SentenceTransformerEmbedder
from kernel.embedder.queue import QueuedEmbedder
from kernel.embedder.registry import Embedders, UnknownEmbedder
from kernel.embedder.remote import Endpoint, RemoteEmbedder
from kernel.embedder.settings import EmbedderSettings, EmbedderSpec

__all__ = [
    "Embedder", "EmbedderError", "EmbedderSettings", "EmbedderSpec", "Embedders", "Endpoint",
    "HashedEmbedder", "LocalModel", "Matrix", "QueuedEmbedder", "RemoteEmbedder",
    "SentenceTransformerEmbedder", "UnknownEmbedder", "Vector", "ensure_bundled", "load_embedder",
    "load_embedders",
]  # fmt: skip
