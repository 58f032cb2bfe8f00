"""Counting tokens, and cutting a text to a number of them."""

import re
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORDWISE = ("WhitespaceSplit", "BertPreTokenizer")
"""Pre-tokenizers that never let a token span whitespace, so that counts of words add up."""

LONGEST_CACHED = 48


class TokenCounter(Protocol):
    """What a chunker and a client of a remote model need of a tokenizer."""

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens not counted."""

    def cut(self, text: str, limit: int) -> str:
        """A prefix of `text` of about `limit` tokens; all of it where it has no more."""


class EstimatedTokens:
    """Without a tokenizer: one token for `bytes_per_token` UTF-8 bytes, rounded up."""

    def __init__(self, bytes_per_token: float = 3.0) -> None:
        self._bytes = bytes_per_token

    def count(self, text: str) -> int:
        return ceil(len(text.encode()) / self._bytes)

    def cut(self, text: str, limit: int) -> str:
        return text.encode()[: int(limit * self._bytes)].decode(errors="ignore")


class HuggingFaceTokens:
    """A `tokenizer.json`, in a copy of its own: counting needs no lock against the model.

    In a model's own tokenizer, truncation and padding are state that its encoder switches.
    """

    def __init__(self, tokenizer: "Tokenizer") -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._wordwise = any(name in repr(tokenizer.pre_tokenizer) for name in WORDWISE)
        self._word = lru_cache(maxsize=1 << 17)(self._encoded)

    @classmethod
    def from_file(cls, path: Path) -> "HuggingFaceTokens":
        """Load `tokenizer.json` at `path`."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(path)))

    def count(self, text: str) -> int:
        if not self._wordwise:
            return self._encoded(text)
        return sum(
            self._word(word) if len(word) <= LONGEST_CACHED else self._encoded(word)
            for word in re.findall(r"[^ \t\r\n]+", text)
        )

    def cut(self, text: str, limit: int) -> str:
        """See `TokenCounter.cut`."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= limit:
            return text
        return text[: encoding.offsets[limit - 1][1]]

    def _encoded(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)
