"""Which embedder, and how it runs."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from kernel.settings import Environment


class EmbedderSpec(BaseModel):
    """What makes an embedder the one that it is: another value may give other vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    embedder: str = Field(
        default="bundled",
        min_length=1,
        description="`bundled`, `hashed` (no model), a folder, or a hub name such as BAAI/bge-m3",
    )
    embedder_neutral: bool = Field(
        default=True,
        description="take out of the vectors of the bundled model which language a text is in",
    )
    embedder_revision: str | None = Field(default=None, description="commit of a hub model")
    embedder_query_prompt: str | None = Field(
        default=None,
        description="text before every question; unset: what the model's own folder says",
    )
    embedder_document_prompt: str | None = Field(
        default=None,
        description="text before every passage; unset: what the model's own folder says",
    )
    embedder_max_tokens: int = Field(
        default=0, ge=0, description="tokens that are read of a text; 0: as many as the model can"
    )
    embeddings_url: str | None = Field(
        default=None, description="endpoint; takes the place of a local model when set"
    )
    embeddings_api: Literal["openai", "tei"] = Field(
        default="openai", description="what the endpoint speaks: `openai` or `tei`"
    )
    embeddings_model: str = Field(
        default="BAAI/bge-m3", description="the name that the endpoint knows"
    )
    embeddings_key: SecretStr | None = Field(default=None, description="key of the endpoint")
    embeddings_dim: int = Field(
        default=0, ge=0, description="length of its vectors; 0: ask it at the start"
    )
    embeddings_tokenizer: str = Field(
        default="bundled",
        description="`bundled` (XLM-R's, which is BGE-M3's), a tokenizer.json, or `estimate`",
    )


class EmbedderSettings(EmbedderSpec, Environment):
    """Read once, where a service is put together."""

    model_config = SettingsConfigDict(extra="ignore")

    embedders: dict[str, EmbedderSpec] = Field(
        default_factory=dict,
        description="further embedders that a project may choose, by name: JSON, each with such of "
        'these settings as it needs, `{"old": {"embedder": "bundled"}}`',
    )
    embed_batch_tokens: int = Field(
        default=256,
        ge=1,
        description="padded tokens of a batch of passages: what a question may wait for",
    )
    torch_threads: int = Field(
        default=0,
        ge=0,
        description="threads of a local model; 0: the cores that the process may use",
    )
    torch_device: str = Field(default="cpu", description="`cpu`, `cuda`, `cuda:1`, `mps`")
    model_cache: Path | None = Field(
        default=None,
        description="where the bundled model is built; unset: citelog in the user's cache",
    )
    embeddings_timeout_seconds: float = Field(
        default=60.0, gt=0, description="longest wait for one request"
    )
    embeddings_batch_size: int = Field(default=16, ge=1, description="texts in one request")

    def of(self, spec: EmbedderSpec) -> "EmbedderSettings":
        """The settings of a further embedder: it is what `spec` says, and runs as this one does."""
        return self.model_copy(update={n: getattr(spec, n) for n in EmbedderSpec.model_fields})
