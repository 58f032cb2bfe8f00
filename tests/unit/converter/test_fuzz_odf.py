"""OpenDocument, damaged in every way."""

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.media import ODP, ODS, ODT
from tests.unit.converter.fuzzing import BOUNDED, check, damaged_zip
from tests.unit.converter.test_odf import content, frame, row, sheet, value

BODIES = {
    ODT: ("text", '<text:h text:outline-level="1">a</text:h><text:p>b<text:s text:c="3"/></text:p>'
          "<text:list><text:list-item><text:p>c</text:p></text:list-item></text:list>"
          "<table:table><table:table-row>" + value("d", 'table:number-rows-spanned="2"')
          + '</table:table-row></table:table>'),
    ODS: ("spreadsheet", sheet(row(value("a") + value("1", 'office:value-type="float" '
          'office:value="1.5"'), 'table:number-rows-repeated="3"'))),
    ODP: ("presentation", "<draw:page>" + frame("<text:p>a</text:p>") + "</draw:page>"),
}  # fmt: skip


def _valid(kind: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content.xml", content(*BODIES[kind]))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", BODIES)
@BOUNDED
@given(data=st.data())
def test_a_damaged_document_is_read_or_refused(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    check(tmp_path / "a", data.draw(damaged_zip(_valid(kind))), kind)
