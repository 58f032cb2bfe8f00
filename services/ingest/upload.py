"""A multipart body as a stream: the file flows through, nothing is spooled."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming_form_data import ParseFailedException, StreamingFormDataParser
from streaming_form_data.targets import BaseTarget, ValueTarget
from streaming_form_data.validators import MaxSizeValidator, ValidationError

from kernel.errors import Refusal

FIELDS = ("project", "source", "supersedes", "valid_from", "trusted", "lane")
FIELD_BYTES = 4096


class _File(BaseTarget):  # type: ignore[misc]
    """Holds what one network chunk brought of the file, until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self.seen = 0

    def on_start(self) -> None:
        self.seen += 1

    def on_data_received(self, chunk: bytes) -> None:
        self.parts.append(chunk)


@dataclass
class Multipart:
    """Feeds a request body to the parser; `file` yields the file's bytes as they come.

    `name` is known once the first bytes of the file were seen, `fields` when `file` has ended.
    """

    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    _file: _File = field(default_factory=_File)
    _values: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file name as sent."""
        return self._file.multipart_filename or ""

    @property
    def fields(self) -> dict[str, str]:
        """The other fields that were sent, decoded."""
        try:
            values = {k: t.value.decode() for k, t in self._values.items()}
        except UnicodeDecodeError as error:
            raise Refusal("invalid-request", "a form field is not UTF-8") from error
        return {k: v for k, v in values.items() if v}

    async def file(self) -> AsyncIterator[bytes]:
        """The bytes of the one field `file`.

        Raises:
            Refusal: `invalid-request`: no multipart body, no file, several files, a field too long.
        """
        parser = self._parser()
        async for chunk in self.body:
            try:
                parser.data_received(chunk)
            except (ParseFailedException, ValidationError, ValueError) as error:
                raise Refusal("invalid-request", f"the form cannot be read: {error}") from error
            if self._file.seen > 1:
                raise Refusal("invalid-request", "one file a request, please")
            parts, self._file.parts = self._file.parts, []
            for part in parts:
                yield part
        if not self._file.seen:
            raise Refusal("invalid-request", "the form has no field `file`")

    def _parser(self) -> Any:
        try:
            parser = StreamingFormDataParser(headers=dict(self.headers))
        except (ParseFailedException, KeyError, ValueError) as error:
            raise Refusal("invalid-request", "send multipart/form-data or JSON") from error
        parser.register("file", self._file)
        for name in FIELDS:
            target = ValueTarget(validator=MaxSizeValidator(FIELD_BYTES))
            parser.register(name, target)
            self._values[name] = target
        return parser
