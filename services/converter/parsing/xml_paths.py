"""XPaths of the elements of a part, taken before anything in it is changed."""

from collections.abc import Container
from typing import Any


class Paths:
    """`/w:document[1]/w:body[1]/w:p[3]` for the elements with one of the wanted tags.

    One walk for all: to ask lxml for each would count all siblings each time.
    """

    def __init__(self, root: Any, wanted: Container[str]) -> None:
        # Elements are the keys, so that each keeps its identity as long as it is looked up.
        self._paths: dict[Any, str] = {}
        stack: list[tuple[Any, str]] = [(root, f"/{_name(root)}[1]")]
        while stack:
            element, path = stack.pop()
            if element.tag in wanted:
                self._paths[element] = path
            counts: dict[str, int] = {}
            for child in element:
                if not isinstance(child.tag, str):
                    continue
                name = _name(child)
                counts[name] = counts.get(name, 0) + 1
                stack.append((child, f"{path}/{name}[{counts[name]}]"))

    def of(self, element: Any) -> str | None:
        """The path of an element that stood there at the beginning."""
        return self._paths.get(element)


def _name(element: Any) -> str:
    local = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else str(local)
