"""The registry: by the name that a project chose, by the model that a generation names."""

import json

import pytest

from kernel.embedder import (
    Embedder,
    EmbedderError,
    Embedders,
    EmbedderSettings,
    HashedEmbedder,
    UnknownEmbedder,
    load_embedders,
)
from kernel.embedder.load import PLAIN
from kernel.errors import Retry

DEFAULT, SMALL = HashedEmbedder(), HashedEmbedder(64)


def _registry(loads: list[str] | None = None) -> Embedders:
    def load() -> Embedder:
        if loads is not None:
            loads.append("small")
        return SMALL

    return Embedders(DEFAULT, {"small": load})


async def test_a_project_that_chose_none_has_the_default() -> None:
    assert await _registry().named(None) is DEFAULT


async def test_a_further_embedder_is_loaded_once_when_it_is_needed() -> None:
    loads: list[str] = []
    registry = _registry(loads)
    assert await registry.of(DEFAULT.model_id) is DEFAULT and loads == []
    assert await registry.of(SMALL.model_id) is SMALL
    assert await registry.named("small") is SMALL and loads == ["small"]


async def test_vectors_of_a_model_that_nobody_named_are_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownEmbedder, match="kb rebuild"):
        await _registry().of("other")
    with pytest.raises(UnknownEmbedder, match="KB_EMBEDDERS"):
        await _registry().named("other")


async def test_one_that_cannot_be_loaded_does_not_hide_the_next() -> None:
    def broken() -> Embedder:
        raise EmbedderError("no such folder")

    registry = Embedders(DEFAULT, {"a-broken": broken, "small": lambda: SMALL})
    assert await registry.of(SMALL.model_id) is SMALL


async def test_one_that_is_away_may_be_the_one() -> None:
    def away() -> Embedder:
        raise Retry("away")

    with pytest.raises(Retry):
        await Embedders(DEFAULT, {"far": away}).of("other")


async def test_the_environment_names_further_embedders(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"small": {"embedder": "hashed", "embeddings_dim": 64}}
    monkeypatch.setenv("KB_EMBEDDER", "hashed")
    monkeypatch.setenv("KB_EMBEDDER_QUERY_PROMPT", "of the default only")
    monkeypatch.setenv("KB_EMBEDDERS", json.dumps(more))
    registry = load_embedders()
    assert (await registry.named(None)).dim == 512
    assert (await registry.named("small")).dim == 64
    settings = EmbedderSettings()
    further = settings.of(settings.embedders["small"])
    assert (settings.embedder_query_prompt, further.embedder_query_prompt) == (
        "of the default only",
        None,
    )
    await registry.aclose()


def test_bases_with_the_older_vectors_of_the_bundled_model_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KB_EMBEDDER", "hashed")
    assert load_embedders().names == []
    monkeypatch.setenv("KB_EMBEDDERS", '{"old": {"embedder": "bundled"}}')
    assert load_embedders().names == [PLAIN, "old"]


async def test_models_of_one_process_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_EMBEDDER", "hashed")
    monkeypatch.setenv("KB_EMBEDDERS", '{"small": {"embedder": "hashed", "embeddings_dim": 64}}')
    registry = load_embedders()
    first, second = registry.default, await registry.named("small")
    assert vars(first)["_turnstile"] is vars(second)["_turnstile"]


def test_a_setting_that_no_embedder_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_EMBEDDERS", '{"small": {"dim": 64}}')
    with pytest.raises(ValueError, match="dim"):
        EmbedderSettings()
