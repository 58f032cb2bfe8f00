"""Settings of search."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from kernel.keywords import Mode


class SearchSettings(BaseSettings):
    """Read once, where the service is put together."""

    model_config = SettingsConfigDict(
        env_prefix="KB_SEARCH_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    keyword_mode: Mode = Field(
        "or", description="legacy: every word; or: any word; and_or: every word first"
    )
    position_wait_s: float = Field(
        5, ge=0, le=60, description="Longest wait until a reply reflects a `min_position`"
    )
