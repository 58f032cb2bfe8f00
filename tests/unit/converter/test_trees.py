"""Searches of Beautiful Soup that do without its matchers find what it finds."""

from typing import Any

import pytest
from bs4 import BeautifulSoup

from services.converter.parsing.trees import parsed

PAGE = (
    "<body><p>a<b>b<i>c</i></b></p><p></p><div><p>d</p><br/>e</div><ul><li>f<ul><li>g</li></ul>"
    "</li></ul><!-- h --></body>"
)


@pytest.mark.parametrize("name", ["p", "li", "b", "none", True, ["p", "ul"], ["i"]])
@pytest.mark.parametrize("within", [None, "body", "p", "div", "ul", "i", "br"])
def test_elements_are_found_in_their_order(name: Any, within: str | None) -> None:
    ours, theirs = parsed(PAGE), BeautifulSoup(PAGE, "lxml")
    if within:
        ours, theirs = ours.find(within), theirs.find(within)  # type: ignore[assignment]
    assert [str(tag) for tag in ours.find_all(name)] == [str(t) for t in theirs.find_all(name)]


@pytest.mark.parametrize(
    "more", [{"limit": 1}, {"recursive": False}, {"string": "d"}, {"class_": "x"}]
)
def test_other_searches_are_those_of_the_library(more: dict[str, Any]) -> None:
    ours, theirs = parsed(PAGE), BeautifulSoup(PAGE, "lxml")
    found = ours.find_all("p", **more)
    assert [str(tag) for tag in found] == [str(tag) for tag in theirs.find_all("p", **more)]


def test_what_is_taken_out_of_the_tree_is_not_found() -> None:
    soup = parsed(PAGE)
    soup.find("div").decompose()  # type: ignore[union-attr]
    assert [tag.get_text() for tag in soup.find_all("p")] == ["abc", ""]
    assert parsed("").find_all("p") == []
