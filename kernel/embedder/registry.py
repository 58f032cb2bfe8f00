"""The embedders of a process: the one that it was given, and further ones by their names."""

import asyncio
from collections.abc import Callable, Mapping

import structlog

from kernel.embedder.base import Embedder, EmbedderError
from kernel.errors import KbError, Retry

log = structlog.get_logger()
DEFAULT = "default"
"""The name of the one that the process was given."""
Load = Callable[[], Embedder]
"""Loads an embedder; takes seconds. Raises as `load_embedder`."""


class UnknownEmbedder(KbError):
    """No embedder of this process has that name, or makes such vectors."""


class Embedders:
    """A generation of an index names the model of its vectors; who reads or writes it asks here.

    `default` is loaded; the `others` are when somebody needs one of them.
    """

    def __init__(self, default: Embedder, others: Mapping[str, Load] | None = None) -> None:
        self.default = default
        self._others = dict(others or {})
        self._loaded: dict[str, Embedder] = {}
        self._loading = asyncio.Lock()

    @property
    def names(self) -> list[str]:
        """Of those that a project may choose besides the default."""
        return sorted(self._others)

    async def named(self, name: str | None = None) -> Embedder:
        """The embedder that a project chose; None or `default`: the default.

        Raises:
            UnknownEmbedder: there is none of that name.
            EmbedderError, kernel.errors.Retry: it cannot be loaded.
        """
        if name in (None, DEFAULT):
            return self.default
        if name not in self._others:
            raise UnknownEmbedder(f"no embedder is named {name}: add it to KB_EMBEDDERS")
        async with self._loading:
            if name not in self._loaded:
                self._loaded[name] = await asyncio.to_thread(self._others[name])
                log.info("embedder.loaded", name=name, model=self._loaded[name].model_id)
            return self._loaded[name]

    async def of(self, model_id: str) -> Embedder:
        """The embedder whose vectors are those of `model_id`.

        Raises:
            UnknownEmbedder: none of this process's is.
            kernel.errors.Retry: one that may be it is away.
        """
        for embedder in (self.default, *self._loaded.values()):
            if embedder.model_id == model_id:
                return embedder
        away: Retry | None = None
        for name in self.names:
            try:
                embedder = await self.named(name)
            except Retry as error:
                away = error
            except EmbedderError as error:
                log.warning("embedder.unusable", name=name, error=str(error)[:300])
            else:
                if embedder.model_id == model_id:
                    return embedder
        if away is not None:
            raise away
        raise UnknownEmbedder(
            f"the vectors are of {model_id}, the embedder is now {self.default.model_id}: run "
            "kb rebuild, or name the old one in KB_EMBEDDERS"
        )

    async def aclose(self) -> None:
        """Free all of them."""
        for embedder in (self.default, *self._loaded.values()):
            await embedder.aclose()
