"""`python -m tests.model [--runs 1000] [--seed N]`: random histories against the reference."""

import argparse
import asyncio
import logging
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from kernel.embedded import EmbeddedPostgres
from kernel.migrations import migrate
from tests.model import fuse
from tests.model.machine import Histories


@contextmanager
def ready(dsn: str) -> Iterator[type[Histories]]:
    """The machine, on a migrated database."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with asyncio.Runner() as runner:
        Histories.runner = runner
        Histories.pool = runner.run(fuse.pool(dsn))
        try:
            yield Histories
        finally:
            Histories.pool.terminate()


def run(dsn: str, *, runs: int, steps: int, number: int | None = None) -> None:
    """So many histories; without a `number` to begin with as the profile of hypothesis has it.
    Raises what the first that fails raises, shrunk."""
    chosen = settings(
        max_examples=runs, stateful_step_count=steps, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), print_blob=True, report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    with ready(dsn) as machine:
        chosen_machine = machine if number is None else seed(number)(machine)
        run_state_machine_as_test(chosen_machine, settings=chosen)


def main() -> None:
    """Print the seed, how often each rule ran, and the shrunk failure if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    asked = parser.parse_args()
    sys.stdout.write(f"seed {asked.seed}\n")
    with tempfile.TemporaryDirectory(prefix="kb-model-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data", fsync=False)
        dsn = server.start()
        started = time.monotonic()
        try:
            asyncio.run(migrate(dsn))
            run(dsn, runs=asked.runs, steps=asked.steps, number=asked.seed)
        finally:
            seconds = time.monotonic() - started
            server.stop()
            said = ", ".join(f"{n} {c}" for n, c in sorted(Histories.counts.items()))
            sys.stdout.write(f"{seconds:.0f} s; {said}\n")


if __name__ == "__main__":
    main()
