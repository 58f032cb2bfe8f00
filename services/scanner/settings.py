"""How the scanner judges."""

from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kernel.settings import Environment


class ScannerSettings(Environment):
    """Read once, where the scanner or `kb scan` is put together."""

    model_config = SettingsConfigDict(env_prefix="KB_SCANNER_")

    learned: Literal["on", "off"] = Field(
        default="on", description="the learned layer, which sends orders to a model to review"
    )
    learned_windows: int = Field(
        default=512,
        ge=16,
        description="sentences of a document that the learned layer reads in full",
    )
    learned_threads: int = Field(
        default=1, ge=1, description="its threads; more than one pays only on idle cores"
    )
