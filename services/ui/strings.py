"""The catalogue of everything that the pages say."""

import tomllib
from functools import cache
from importlib import resources


class Strings:
    """Calls give a string by `section.key`, its `{names}` filled in.

    Raises:
        KeyError: no such string; a test calls every key that the templates use.
    """

    def __init__(self, table: dict[str, dict[str, str]]) -> None:
        self._all = {f"{s}.{k}": v for s, values in table.items() for k, v in values.items()}

    def __call__(self, key: str, **values: object) -> str:
        return self._all[key].format_map(values) if values else self._all[key]

    def __contains__(self, key: str) -> bool:
        return key in self._all

    def get(self, key: str, default: str) -> str:
        """The string, or `default` where the catalogue has none."""
        return self._all.get(key, default)

    def keys(self) -> frozenset[str]:
        """Every key."""
        return frozenset(self._all)


@cache
def english() -> Strings:
    """The English catalogue, read once."""
    text = (resources.files("services.ui") / "strings" / "en.toml").read_text("utf-8")
    return Strings(tomllib.loads(text))
