"""The scanner's health says what judges."""

from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from pydantic import SecretStr

from kernel.large import OneLarge
from services.scanner.app import create_app
from services.scanner.judge import Judge, open_judge
from services.scanner.settings import ScannerSettings


async def health(judge: Judge) -> dict[str, Any]:
    async def state() -> dict[str, Any]:
        return {"status": "ok", "services": ["scanner"]}

    settings = SimpleNamespace(api_key=SecretStr("key"))
    env = SimpleNamespace(settings=settings, health=state, log=None, blobs=None)
    app = create_app(cast(Any, env), cast(Any, None), OneLarge(), judge)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://scanner") as client:
        found: dict[str, Any] = (await client.get("/health")).json()
    return found


async def test_with_the_learned_layer() -> None:
    judge = open_judge(ScannerSettings())
    if judge.without_model:
        pytest.skip(f"THE LEARNED LAYER IS NOT TESTED: {judge.without_model}")
    found = await health(judge)
    assert (found["status"], found["learned"]) == ("ok", "on")
    assert found["ruleset"] == judge.version


async def test_without_it() -> None:
    found = await health(open_judge(ScannerSettings(learned="off")))
    assert (found["status"], found["learned"]) == ("ok", "switched off")
    assert "+m-" not in found["ruleset"]
