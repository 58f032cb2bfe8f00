"""An embedder without a model: hashed character n-grams, Serbian scripts folded into one."""

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from kernel.embedder.base import Matrix, Vector, unit_rows

WIDTH = 3
HASHED_DIM, HASHED_TOKENS = 512, 512
TOKEN = re.compile(r"\w{1,4}|[^\w\s]")
LATIN = str.maketrans({
    "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "ђ": "dj", "ѓ": "gj", "е": "e", "ё": "e",
    "ж": "z", "з": "z", "ѕ": "dz", "и": "i", "й": "j", "ј": "j", "к": "k", "л": "l", "љ": "lj",
    "м": "m", "н": "n", "њ": "nj", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "ћ": "c",
    "ќ": "k", "у": "u", "ф": "f", "х": "h", "ц": "c", "ч": "c", "џ": "dz", "ш": "s", "щ": "st",
    "ъ": "a", "ы": "y", "ь": "", "э": "e", "ю": "ju", "я": "ja", "đ": "dj", "ß": "ss",
})  # fmt: skip


def fold(text: str) -> str:
    """Lower case, Cyrillic in Latin letters, without accents."""
    latin = unicodedata.normalize("NFC", text.lower()).translate(LATIN)
    plain = unicodedata.normalize("NFKD", latin)
    return "".join(c for c in plain if not unicodedata.combining(c))


class HashedEmbedder:
    """For unit tests, and machines where no model fits; finds shared words, not shared meaning."""

    def __init__(self, dim: int = HASHED_DIM, max_tokens: int = HASHED_TOKENS) -> None:
        self._dim, self._max_tokens = dim, max_tokens

    @property
    def model_id(self) -> str:
        return f"hashed-{WIDTH}gram-1#dim={self._dim},max={self._max_tokens}"

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, text: str) -> int:
        return sum(1 for _ in TOKEN.finditer(text))

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return await asyncio.to_thread(self._rows, texts)

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = (await self.embed_documents([text]))[0]
        return vector

    async def aclose(self) -> None:
        """Holds nothing."""

    def _rows(self, texts: Sequence[str]) -> Matrix:
        rows = [self._counts(text) for text in texts]
        return unit_rows(np.reshape(rows, (len(rows), self._dim)), self._dim)

    def _counts(self, text: str) -> Vector:
        """Logarithmic counts of n-grams, each at a hashed place with a hashed sign."""
        vector = np.zeros(self._dim, dtype=np.float32)
        vector[0] = 0.01  # a text without a letter still needs a direction
        grams: Counter[str] = Counter()
        for word in re.findall(r"\w+", fold(self._cut(text))):
            padded = f" {word} "
            grams.update(padded[i : i + WIDTH] for i in range(max(1, len(padded) - WIDTH + 1)))
        for gram, count in grams.items():
            place = crc32(gram.encode(errors="replace"))
            vector[place % self._dim] += (1 if place >> 31 else -1) * np.log1p(count)
        return vector

    def _cut(self, text: str) -> str:
        for number, token in enumerate(TOKEN.finditer(text)):
            if number == self._max_tokens:
                return text[: token.start()]
        return text
