"""How the indexer cuts."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class IndexerSettings(BaseSettings):
    """Read once, where the service is put together."""

    model_config = SettingsConfigDict(
        env_prefix="KB_INDEXER_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    chunk_tokens: int = Field(
        default=500,
        ge=64,
        le=8192,
        description="tokens of a passage with breadcrumb and context, at most",
    )
