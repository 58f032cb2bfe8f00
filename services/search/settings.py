"""Settings of search."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kernel.keywords import Mode
from kernel.settings import Environment
from services.search.domain import Fusion


class SearchSettings(Environment):
    """Read once, where the service is put together."""

    model_config = SettingsConfigDict(env_prefix="KB_SEARCH_")

    keyword_mode: Mode = Field(
        "or", description="legacy: every word; or: any word; and_or: every word first"
    )
    fusion: Fusion = Field(
        "rrf",
        description="rrf: by the ranks in both legs; scores: by their scores (eval/RESULTS.md)",
    )
    position_wait_s: float = Field(
        5, ge=0, le=60, description="Longest wait until a reply reflects a `min_position`"
    )
    answer_within_s: float = Field(
        30, gt=0, le=55, description="Longest work at a question; then 504 `too-slow`"
    )
