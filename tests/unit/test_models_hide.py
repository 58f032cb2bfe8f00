"""What a model refuses is not repeated in its error: it may be a document's text, or a password,
and errors end in logs."""

import importlib
import json
import pkgutil
from collections.abc import Iterator

import pydantic
import pytest
from pydantic_settings import BaseSettings

import cli
import contracts
import kernel
import services
from contracts.artifacts import BodyMeta
from contracts.envelope import Envelope
from contracts.query import QueryRequest
from kernel.settings import Settings

OURS = (cli, contracts, kernel, services)


def models() -> Iterator[type[pydantic.BaseModel]]:
    """All models of the product."""
    names = tuple(package.__name__ for package in OURS)
    for package in OURS:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    waiting = [pydantic.BaseModel, BaseSettings]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if model.__module__.split(".")[0] in names:
                yield model


def test_no_model_repeats_what_it_refuses() -> None:
    found = {f"{m.__module__}.{m.__name__}": m for m in models()}
    assert len(found) > 100
    telling = [n for n, m in found.items() if not m.model_config.get("hide_input_in_errors")]
    assert telling == []


@pytest.mark.parametrize("model", [BodyMeta, Envelope, QueryRequest])
def test_a_refused_text_is_in_no_error(model: type[pydantic.BaseModel]) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        model.model_validate_json(json.dumps({"title": ["qzvsecret"], "query": ["qzvsecret"]}))
    assert "qzvsecret" not in str(refused.value)


def test_a_wrong_setting_does_not_print_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_API_KEY", "qzvsecret")
    monkeypatch.setenv("KB_PORT", "qzvport")
    with pytest.raises(pydantic.ValidationError) as refused:
        Settings()
    assert "port" in str(refused.value)
    assert "qzv" not in str(refused.value)
