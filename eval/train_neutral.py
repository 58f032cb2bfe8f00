"""Which directions of the bundled model's vectors are languages: `kernel/embedder/languages.npz`.

`python -m eval.train_neutral` fits and writes them, some minutes. Sentences of news and web (those
of lingua's tests in the evaluation data, Leipzig corpora, CC BY) in eight languages, Serbian also
in Latin letters, four to a passage; the mean vector of each language. The directions are what these
means span. Nothing else of the text is kept. No base that is measured, and no question, is used.
"""

import asyncio
import json
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from eval.corpus import EVALDATA, ROOT
from eval.language_sources import latin
from kernel.embedder import EmbedderSettings, load_embedder
from kernel.keywords import LANGUAGES

TEXTS = EVALDATA / "lid" / "lingua" / "sentences.jsonl"
TARGET = ROOT / "kernel" / "embedder" / "languages.npz"
PASSAGES, SENTENCES = 40, 4


def passages() -> dict[str, list[str]]:
    """So many of each language, and of each script of Serbian."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in TEXTS.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["lang"] in LANGUAGES:
            found[row["lang"]].append(row["text"])
    found["sr-Latn"] = [latin(text) for text in found["sr"]]
    return {
        language: [" ".join(texts[n * SENTENCES : (n + 1) * SENTENCES]) for n in range(PASSAGES)]
        for language, texts in sorted(found.items())
    }


def directions(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Orthonormal rows that span the means of the languages, what all have in common included."""
    return np.asarray(np.linalg.svd(means, full_matrices=False)[2], np.float32)


async def fitted() -> NDArray[np.float32]:
    """The directions, from the vectors of the plain model."""
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings(embedder_neutral=False))
    means = [(await embedder.embed_documents(texts)).mean(0) for texts in passages().values()]
    await embedder.aclose()
    return directions(np.stack(means))


if __name__ == "__main__":
    np.savez(TARGET, basis=asyncio.run(fitted()))
