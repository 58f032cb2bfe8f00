"""`python -m eval.bench [PART…]`: prints figures as ratios of one run.

Of time and truth: `replay`, `rebuild`, `moving`, `growth` (appends and memory against the size of
the log), `chain`, `asof`, `scrub`. They take up to an hour, so they run when they are named; so do
`ingesting` (questions while passages are embedded) and `eval.bench.search` beyond 10⁴ passages.
"""

import asyncio
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module

from eval.bench.report import HEAD, Row

PARTS = ("log", "hops", "line", "search", "embedding")


def main() -> None:
    """Run the named parts, or the short ones."""
    parts = sys.argv[1:] or list(PARTS)
    now, python = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", platform.python_version()
    print(f"{now}, {platform.machine()}, Python {python}")
    print(HEAD, flush=True)
    rows = [row for part in parts for row in _part(part)]
    sys.exit(not all(r.holds for r in rows))


def _part(name: str) -> "list[Row]":
    rows = asyncio.run(import_module(f"eval.bench.{name}").measure())
    for row in rows:
        print(row.line(), flush=True)
    return list(rows)


if __name__ == "__main__":
    main()
