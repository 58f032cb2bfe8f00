"""An embedding endpoint, OpenAI-compatible or text-embeddings-inference (TEI)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import numpy as np
from numpy.typing import NDArray

from kernel.embedder.base import EmbedderError, Matrix, Vector, unit_rows
from kernel.embedder.tokens import TokenCounter
from kernel.errors import Retry

Api = Literal["openai", "tei"]

LONGEST_WAIT = 60.0
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Endpoint:
    """Where the model is, and how it wants to be asked.

    `url` may end before or after `/v1/embeddings` or `/embed`. `timeout_seconds` is for one
    request, `batch_size` the texts in it.
    """

    url: str
    model: str
    api: Api = "openai"
    api_key: str | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    timeout_seconds: float = 60.0
    batch_size: int = 16

    @property
    def address(self) -> str:
        """The full URL of a request."""
        base = self.url.rstrip("/")
        if self.api == "tei":
            return base if base.endswith("/embed") else f"{base}/embed"
        if base.endswith("/embeddings"):
            return base
        return f"{base}/embeddings" if base.endswith("/v1") else f"{base}/v1/embeddings"

    def request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The JSON body for `texts`."""
        if self.api == "tei":
            return {"inputs": list(texts), "normalize": True, "truncate": True}
        return {"model": self.model, "input": list(texts), "encoding_format": "float"}

    def headers(self) -> dict[str, str]:
        """Authorization, where there is a key."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


class RemoteEmbedder:
    """Belongs to the event loop of its first call. The endpoint has a queue of its own.

    `tokens` should be the model's tokenizer: it cuts texts to `max_tokens` before they are sent.
    """

    def __init__(
        self, endpoint: Endpoint, *, dim: int, max_tokens: int, tokens: TokenCounter
    ) -> None:
        self._endpoint, self._dim, self._max_tokens = endpoint, dim, max_tokens
        self._tokens = tokens
        self._client = httpx.AsyncClient(
            headers=endpoint.headers(), timeout=httpx.Timeout(endpoint.timeout_seconds, connect=10)
        )

    @property
    def model_id(self) -> str:
        # not the address: a server that moved gives the same vectors
        e = self._endpoint
        options = (e.query_prompt, e.document_prompt, self._max_tokens, self._dim)
        digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
        return f"{e.model}@{e.api}#{digest}"

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, text: str) -> int:
        return self._tokens.count(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), self._dim), dtype=np.float32)
        size = self._endpoint.batch_size
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            vectors[start : start + size] = await self._ask(batch, self._endpoint.document_prompt)
        return vectors

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = (await self._ask([text], self._endpoint.query_prompt))[0]
        return vector

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _ask(self, texts: Sequence[str], prompt: str) -> Matrix:
        inputs = [prompt + (self._tokens.cut(text, self._max_tokens) or " ") for text in texts]
        try:
            response = await self._client.post(
                self._endpoint.address, json=self._endpoint.request(inputs)
            )
        except httpx.TransportError as error:
            raise Retry(f"embedding endpoint: {type(error).__name__}") from error
        return unit_rows(read_reply(self._endpoint, response, len(texts)), self._dim)


def probe_dim(endpoint: Endpoint) -> int:
    """Ask the endpoint once how long its vectors are.

    Raises:
        kernel.errors.Retry: it does not answer now.
        EmbedderError: it answers, but not with embeddings.
    """
    try:
        response = httpx.post(
            endpoint.address, json=endpoint.request(["dimension"]), headers=endpoint.headers(),
            timeout=endpoint.timeout_seconds,
        )  # fmt: skip
    except httpx.TransportError as error:
        raise Retry(f"embedding endpoint: {type(error).__name__}") from error
    return int(read_reply(endpoint, response, 1).shape[1])


def read_reply(endpoint: Endpoint, response: httpx.Response, expected: int) -> NDArray[np.floating]:
    """The vectors of a reply in the order of the request, shape (expected, dim).

    Raises:
        kernel.errors.Retry: the endpoint is overloaded or broken for the moment.
        EmbedderError: it refuses the request, or answers something else.
    """
    if response.status_code in TRANSIENT:
        raise Retry(f"embedding endpoint: {response.status_code}", after=_retry_after(response))
    if response.status_code != 200:
        raise EmbedderError(
            f"the embedding endpoint refused with {response.status_code}: check KB_EMBEDDINGS_URL, "
            "KB_EMBEDDINGS_API, KB_EMBEDDINGS_MODEL and KB_EMBEDDINGS_KEY"
        )
    try:
        reply = response.json()
        if endpoint.api == "openai":
            rows = sorted(reply["data"], key=lambda row: row["index"])
            reply = [row["embedding"] for row in rows]
        vectors = np.asarray(reply, dtype=np.float64)
    except (ValueError, TypeError, KeyError) as error:
        raise EmbedderError("the embedding endpoint's reply holds no embeddings") from error
    if vectors.ndim != 2 or len(vectors) != expected:
        raise EmbedderError(f"asked for {expected} vectors, got an array of {vectors.shape}")
    return vectors


def _retry_after(response: httpx.Response) -> float:
    """Seconds from the header, where it is a number; a minute at most."""
    try:
        return min(LONGEST_WAIT, max(0.1, float(response.headers.get("retry-after", "1"))))
    except ValueError:
        return 1.0
