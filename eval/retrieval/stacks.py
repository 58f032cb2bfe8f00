"""Which stacks are measured: one that runs, or one of its own for each configuration."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

from docs.make_settings import readers, settings
from tests.stack import Stack


class BadConfig(Exception):
    """No setting of this name."""


@dataclass(frozen=True)
class Config:
    """Settings that differ from the defaults."""

    settings: tuple[tuple[str, str], ...] = ()
    without: str = "default"
    """Its name if there are none."""

    @property
    def name(self) -> str:
        """As in the head of a table."""
        return " ".join(f"{name}={value}" for name, value in self.settings) or self.without

    @property
    def keeps_index(self) -> bool:
        """Does only search read these settings, so that one index serves with and without them?"""
        return all(readers(name) == ["search"] for name, _ in self.settings)


def parsed(words: Sequence[str]) -> Config:
    """`NAME=VALUE` words as a configuration.

    Raises:
        BadConfig: a misspelt name would be ignored, and the default be compared with itself.
    """
    known = _known()
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise BadConfig(f"{word}: not NAME=VALUE with a name of docs/operations.md, Settings")
        found.append((name, value))
    return Config(tuple(found))


@cache
def _known() -> frozenset[str]:
    """Every name; all of the product is read for them."""
    return frozenset(settings())


def outside(url: str, key: str) -> httpx.AsyncClient:
    """A client of a stack that runs already."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=120)


@contextmanager
def running(folder: Path, config: Config, make: Callable[..., Stack] = Stack) -> Iterator[Stack]:
    """A stack in `folder` with the bundled embedder, unless the configuration has another."""
    stack = make(folder, "bundled", **dict(config.settings))
    try:
        stack.kb("up", "--detach")
        yield stack
    finally:
        stack.kb("down")
