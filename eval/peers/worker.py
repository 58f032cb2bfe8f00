"""One peer in its own process: `python -m eval.peers.worker NAME GIVEN.json FOUND.json`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from eval.peers.systems import SYSTEMS, version
from eval.retrieval.metrics import DEPTH
from eval.retrieval.pipeline import WARM
from eval.retrieval.sets import Document


def measured(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Index, then every question, one at a time."""
    documents = [Document(**row) for row in given["documents"]]
    began = time.perf_counter()
    search = SYSTEMS[name][0](documents, Path(given["model"]), DEPTH)
    seconds = time.perf_counter() - began
    queries: dict[str, str] = given["queries"]
    for text in list(queries.values())[:WARM]:
        search(text)
    rankings, milliseconds = {}, []
    for id_, text in queries.items():
        started = time.perf_counter()
        rankings[id_] = search(text)
        milliseconds.append((time.perf_counter() - started) * 1000)
    return {
        "version": version(name),
        "seconds": seconds,
        "rankings": rankings,
        "milliseconds": milliseconds,
    }


def main(name: str, given: str, found: str) -> None:
    """Reads and writes the files."""
    result = measured(name, json.loads(Path(given).read_text("utf-8")))
    Path(found).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
