"""JSON, damaged in every way."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernel.media import JSON
from tests.unit.converter.fuzzing import BOUNDED, check, damaged

VALID = json.dumps(
    {
        "title": "Naslov", "n": [1, 2.5, None], "users": [{"id": 1, "b": True}, {"id": 2}],
        "deep": {"a": {"b": {"c": ["x", ["y", {"z": "long " * 80}]]}}}, "rows": [[1, 2], [3, 4]],
    },
    ensure_ascii=False, indent=1,
).encode()  # fmt: skip
NAMES = st.text(max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@BOUNDED
@given(data=damaged(VALID))
def test_damaged_json_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, JSON)


@BOUNDED
@given(value=VALUES)
def test_any_json_is_read_or_refused(tmp_path: Path, value: Any) -> None:
    check(tmp_path / "a", json.dumps(value).encode(), JSON)
