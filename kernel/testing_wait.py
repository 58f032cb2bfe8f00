"""Waiting in tests: poll with a deadline, never sleep and assert."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    predicate: Callable[[], Awaitable[T]], *, deadline: float = ..., every: float = ...
) -> T: ...
@overload
async def eventually(
    predicate: Callable[[], T], *, deadline: float = ..., every: float = ...
) -> T: ...
async def eventually(
    predicate: Callable[[], Any], *, deadline: float = 15.0, every: float = 0.02
) -> Any:
    """The first truthy result of `predicate` (plain or async) within `deadline` seconds.

    An AssertionError inside the predicate counts as "not yet".

    Raises:
        AssertionError: nothing truthy in time; tells the last result or assertion.
    """
    until = time.monotonic() + deadline
    while True:
        last: object
        try:
            result = predicate()
            value = await result if inspect.isawaitable(result) else result
            if value:
                return value
            last = value
        except AssertionError as failed:
            last = failed
        if time.monotonic() > until:
            raise AssertionError(f"not within {deadline} s; the last answer was {last!r}")
        await asyncio.sleep(every)
