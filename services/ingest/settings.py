"""Settings of ingest besides those that every process has."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class DropzoneSettings(BaseSettings):
    """`KB_DROPZONE…`."""

    model_config = SettingsConfigDict(
        env_prefix="KB_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    dropzone: Path | None = Field(
        None, description="folder whose files are taken in; kb up: DATA/dropzone, else none"
    )
    dropzone_quiet: float = Field(
        2.0, ge=0, description="seconds that a file must not change before it is taken"
    )
    dropzone_interval: float = Field(1.0, gt=0, description="seconds between two looks at it")
