"""Words of a page as they are written, not as their font prints them."""

import pytest

from services.converter.parsing.pdf_words import composed


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("M¨unster", "Münster"),
        ("Anf¨uhrungszeichen", "Anführungszeichen"),
        ("Hrvatski reˇcnik", "Hrvatski rečnik"),
        ("Mareti´c", "Maretić"),
        ("na¨ıve", "naïve"),
    ],
)
def test_an_accent_before_its_letter_is_one_letter_with_it(printed: str, text: str) -> None:
    assert composed(printed) == text


@pytest.mark.parametrize("text", ["geht´s", "l´ami", "x ¨", "¨", "¨3", "`a^b~c"])
def test_signs_that_are_no_accents_stay(text: str) -> None:
    assert composed(text) == text
