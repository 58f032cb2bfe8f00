"""CSV, damaged in every way."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernel.media import CSV
from tests.unit.converter.fuzzing import BOUNDED, check, damaged

VALID = 'id;name;"the note"\n1;"Ana ""A""";x|y\n2;Иван;"two\nlines"\n\n3;;\n'.encode()


@BOUNDED
@given(data=damaged(VALID))
def test_a_damaged_table_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, CSV)


@BOUNDED
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, CSV)
