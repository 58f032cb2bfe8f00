"""The crash test in its short form; the long one is `make chaos`."""

import pytest

from tests.chaos.drive import run


@pytest.mark.chaos
async def test_killed_processes_lose_nothing_and_do_nothing_twice() -> None:
    report = await run(20, "hashed", seed=7)
    print(report.line())
    assert report.good, report.line()
    assert report.kills.total() >= 20
