"""One large document at a time, and small ones beside it."""

import pytest

from kernel.errors import Retry
from kernel.large import LARGE_BYTES, OneLarge


async def test_a_second_large_document_comes_again_later() -> None:
    large = OneLarge()
    async with large.turn(LARGE_BYTES + 1):
        with pytest.raises(Retry):
            large.check(LARGE_BYTES + 1)
        with pytest.raises(Retry):
            async with large.turn(LARGE_BYTES + 1):
                pass
    async with large.turn(LARGE_BYTES + 1) as is_large:
        assert is_large


async def test_small_documents_never_wait() -> None:
    large = OneLarge()
    async with large.turn(LARGE_BYTES + 1):
        large.check(LARGE_BYTES)
        async with large.turn(LARGE_BYTES) as is_large, large.turn(1):
            assert not is_large
