"""The scanner with and without its learned layer."""

import sys

from eval.scanner.items import Judge
from services.scanner.judge import open_judge
from services.scanner.settings import ScannerSettings


def judges(*, learned: bool) -> dict[str, Judge]:
    """By the name that tables give them; without the learned layer where it cannot be had."""
    found: dict[str, Judge] = {"rules": open_judge(ScannerSettings(learned="off"))}
    if learned:
        whole = open_judge(ScannerSettings(learned="on"))
        if missing := whole.load():
            print(f"without the learned layer: {missing}", file=sys.stderr)
        else:
            found["rules + learned"] = whole
    return found
