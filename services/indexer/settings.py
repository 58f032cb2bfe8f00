"""How the indexer cuts."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kernel.settings import Environment


class IndexerSettings(Environment):
    """Read once, where the service is put together."""

    model_config = SettingsConfigDict(env_prefix="KB_INDEXER_")

    chunk_tokens: int = Field(
        default=500,
        ge=64,
        le=8192,
        description="tokens of a passage with breadcrumb and context, at most",
    )
