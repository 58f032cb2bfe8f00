"""Settings of ingest besides those that every process has."""

from pathlib import Path

from pydantic import Field

from kernel.settings import Environment


class DropzoneSettings(Environment):
    """`KB_DROPZONE…`."""

    dropzone: Path | None = Field(
        None, description="folder whose files are taken in; kb up: DATA/dropzone, else none"
    )
    dropzone_quiet: float = Field(
        2.0, ge=0, description="seconds that a file must not change before it is taken"
    )
    dropzone_interval: float = Field(1.0, gt=0, description="seconds between two looks at it")
