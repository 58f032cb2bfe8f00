"""The scanner with and without its learned layer."""

from collections.abc import Sequence

from contracts.artifacts import HiddenText
from eval.scanner.items import Judge
from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import default_ruleset


class Rules:
    """The rules alone."""

    @property
    def version(self) -> str:
        """Of the rule set."""
        return default_ruleset().version

    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult:
        """Findings and verdict."""
        return scan(text, hidden, default_ruleset())


def judges(*, learned: bool) -> dict[str, Judge]:
    """By the name that tables give them."""
    return {"rules": Rules()}
