"""`python -m eval.bench [log|hops|line|query…]`: prints figures as ratios of one run."""

import asyncio
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module

from eval.bench.report import HEAD, Row

PARTS = ("log", "hops", "line")


def main() -> None:
    """Run the named parts, or all of them."""
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
