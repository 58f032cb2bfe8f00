"""Settings of the converter, read once at start."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, DirectoryPath, Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from kernel.language import ACCEPTED
from kernel.settings import Environment

_MIB = 1024 * 1024


class Limits(BaseModel):
    """What one document may cost. Bytes and seconds."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    wall_seconds: float
    total_seconds: float
    cpu_seconds: int
    memory_bytes: int
    file_bytes: int
    output_bytes: int
    recycle_after: int
    recycle_bytes: int


class ParseOptions(BaseModel):
    """What the child is told with every document."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    max_pages: int = 3000
    max_unpacked_bytes: int = 512 * _MIB
    max_unpacked_ratio: int = 200
    max_depth: int = 200
    max_output_bytes: int = 256 * _MIB
    ocr: bool = True
    page_seconds: float = 240
    total_seconds: float = 4 * 3600
    artifacts: Path | None = None


class ConverterSettings(Environment):
    """`KB_CONVERTER_…`; a frozen copy of the environment."""

    model_config = SettingsConfigDict(env_prefix="KB_CONVERTER_")

    wall_seconds: float = Field(
        default=900, gt=0, description="Longest time in which no page of a document is finished"
    )
    total_seconds: float = Field(
        default=4 * 3600, gt=0, description="Longest time for one document, however it advances"
    )
    page_seconds: float = Field(
        default=240, gt=0, description="Longest time for reading one page by OCR"
    )
    cpu_seconds: int = Field(
        default=1200, gt=0, description="Most processor time until a page is finished"
    )
    memory_mib: int = Field(default=3072, ge=512, description="Most memory of the parsing process")
    max_file_mib: int = Field(default=512, gt=0, description="Largest file that is parsed")
    max_output_mib: int = Field(default=256, gt=0, description="Largest parse that is taken back")
    max_pages: int = Field(default=3000, gt=0, description="Most pages of one document")
    max_unpacked_mib: int = Field(
        default=512, gt=0, description="Largest content of a zipped format"
    )
    max_unpacked_ratio: int = Field(
        default=200, gt=1, description="Most bytes out of one zipped byte"
    )
    max_depth: int = Field(default=200, gt=10, description="Deepest nesting of elements")
    recycle_after: int = Field(
        default=200, gt=0, description="Documents until a fresh parsing process"
    )
    recycle_mib: int = Field(
        default=1536, gt=0, description="Memory at which the process is replaced"
    )
    ocr: bool = Field(default=True, description="Read pictures, and pages without text, by OCR")
    accepted: Annotated[frozenset[str], NoDecode] = Field(
        default=ACCEPTED, description="Languages taken in"
    )
    pdf_engine: Literal["auto", "heuristic", "models"] = Field(
        default="auto",
        description="auto: docling's models where they are on the machine, else our own layout and"
        " tables; heuristic: always our own; models: fetched from the hub if need be",
    )
    artifacts: DirectoryPath | None = Field(
        default=None,
        validation_alias=AliasChoices("KB_DOCLING_ARTIFACTS", "artifacts"),
        description="Folder with docling's layout and table models; without it heuristics",
    )

    @field_validator("accepted", mode="before")
    @classmethod
    def _listed(cls, told: object) -> object:
        """`de, en`, or the same as a list in JSON."""
        return re.findall(r"[A-Za-z]+", told) if isinstance(told, str) else told

    @field_validator("artifacts")
    @classmethod
    def _has_layout_model(cls, folder: Path | None) -> Path | None:
        """A wrong folder must stop the start, and not fail every PDF."""
        if folder is not None and not any(folder.glob("*docling-layout*")):
            raise ValueError(f"{folder} holds no layout model of docling")
        return folder

    @property
    def limits(self) -> Limits:
        """The part that the parent enforces."""
        return Limits(
            wall_seconds=self.wall_seconds,
            total_seconds=self.total_seconds,
            cpu_seconds=self.cpu_seconds,
            memory_bytes=self.memory_mib * _MIB,
            file_bytes=self.max_file_mib * _MIB,
            output_bytes=self.max_output_mib * _MIB,
            recycle_after=self.recycle_after,
            recycle_bytes=self.recycle_mib * _MIB,
        )

    @property
    def parse_options(self) -> ParseOptions:
        """The part that the child obeys."""
        return ParseOptions(
            max_pages=self.max_pages,
            max_unpacked_bytes=self.max_unpacked_mib * _MIB,
            max_unpacked_ratio=self.max_unpacked_ratio,
            max_depth=self.max_depth,
            max_output_bytes=self.max_output_mib * _MIB,
            ocr=self.ocr,
            page_seconds=min(self.page_seconds, self.wall_seconds / 2),
            total_seconds=self.total_seconds,
            artifacts=self.artifacts,
        )
