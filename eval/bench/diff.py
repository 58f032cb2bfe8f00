"""Diff of two long laws: time, processor, memory.

`python -m eval.bench.diff [MB …]` puts the oldest and the newest version of each law of
`../shared/evaldata/retrieval/law_versions` behind each other, again and again with other numbers in
the headings, until both sides are so long (1 and 20 MB if none is given). The change is what the
laws changed between 2012 and 2018.
"""

import asyncio
import resource
import sys
import time

from eval.corpus import EVALDATA
from services.search.diff import compare, counted

LAWS = EVALDATA / "retrieval" / "law_versions"


def bodies(size: int) -> tuple[bytes, bytes]:
    """The laws as they were and as they are, each cut to `size` bytes at the end of a line.

    Raises:
        FileNotFoundError: the laws are not there.
    """
    laws = [sorted(folder.glob("*.md")) for folder in sorted(LAWS.iterdir()) if folder.is_dir()]
    sides = [b"\n\n".join(files[place].read_bytes() for files in laws) for place in (0, -1)]
    return long(sides[0], size), long(sides[1], size)


def long(text: bytes, size: int) -> bytes:
    """The text again and again; the number of the round is in every heading."""
    rounds = size // len(text) + 1
    whole = b"\n\n".join(text.replace(b"# ", b"# %d. " % n) for n in range(rounds))
    return whole[: whole.rfind(b"\n", 0, size) + 1]


async def measured(old: bytes, new: bytes) -> dict[str, float]:
    """Seconds of the clock and of the processor, and how long others waited meanwhile (ms, p95)."""
    waits: list[float] = []

    async def others() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            waits.append(1000 * (time.perf_counter() - begun - 0.005))

    beside = asyncio.create_task(others())
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.to_thread(compare, old, new)
    figures = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}
    beside.cancel()
    waits.sort()
    figures["wait p95 ms"] = waits[int(0.95 * len(waits))] if waits else 0.0
    used = time.process_time()
    counted(old, new)
    return figures | {"cpu of counts": time.process_time() - used}


def main(sizes: list[str]) -> None:
    """Print one line for each size in MB."""
    for size in [int(s) for s in sizes] or [1, 20]:
        old, new = bodies(size * 1_000_000)
        found = compare(old, new)
        figures = asyncio.run(measured(old, new))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        told = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
        print(f"{size} MB: {told}, peak {peak} MB; {found.counts}, left out {found.left_out}")


if __name__ == "__main__":
    main(sys.argv[1:])
