"""Random histories against the reference: a short run of what `make histories` does at length."""

import pytest

from tests.model.__main__ import run


@pytest.fixture
def dsn(database: str) -> str:
    return database


def test_every_query_at_every_time_is_answered_as_the_model_says(dsn: str) -> None:
    run(dsn, runs=30, steps=15)
