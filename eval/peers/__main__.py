"""`python -m eval.peers DIR`: the same documents and embedder through other systems.

Each peer runs in a process of its own, in an environment that is made once from requirements.txt
beside the one that this runs in. Its times are of calls in that process; ours are of HTTP requests
against a whole stack, where each document was also parsed, scanned and logged.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from eval.peers.systems import SYSTEMS
from eval.retrieval import report
from eval.retrieval.__main__ import arguments as retrieval_arguments
from eval.retrieval.__main__ import measured as measured_here
from eval.retrieval.metrics import SEED
from eval.retrieval.pipeline import Answers, Loaded
from eval.retrieval.report import Result
from eval.retrieval.sets import RetrievalSet
from eval.retrieval.stacks import Config
from kernel.embedder import ensure_bundled
from kernel.embedder.bundled import default_cache

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
OWN = "citelog"


def environment(folder: Path) -> Path:
    """The Python of the peers' environment; made where it is missing or of other requirements.

    It sees the packages of this one behind its own: torch is there once.
    """
    python, mark = folder / "bin" / "python", folder / "requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if not mark.exists() or mark.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        (own / "zz_citelog.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)]
        subprocess.run(pip, check=True)
        mark.write_text(wanted)
    return python


def peer(name: str, found: RetrievalSet, python: Path) -> Result:
    """One peer, measured."""
    with TemporaryDirectory(prefix="kb-peers-") as folder:
        given, told = Path(folder) / "given.json", Path(folder) / "found.json"
        content = {
            "documents": [asdict(d) for d in found.documents],
            "queries": dict(found.queries),
            "model": str(ensure_bundled()),
        }
        given.write_text(json.dumps(content), "utf-8")
        command = [str(python), "-m", "eval.peers.worker", name, str(given), str(told)]
        away = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        root = Path(__file__).parents[2]
        subprocess.run(
            command, check=True, cwd=root, env=os.environ | away | {"PYTHONPATH": str(root)}
        )
        result = json.loads(told.read_text("utf-8"))
    rankings = {q: [(id_, score) for id_, score in r] for q, r in result["rankings"].items()}
    answers = Answers(rankings, result["milliseconds"])
    config = Config(without=f"{name} {result['version']}")
    return Result.of(config, found, Loaded("", {}, (), result["seconds"]), answers)


def results(options: argparse.Namespace) -> Iterator[Result]:
    """Citelog first; the peers are compared with it."""
    python = environment(options.venv)
    if OWN in options.systems:
        for result in measured_here(options):
            yield Result(Config(without=OWN), result.loaded, result.answers, result.values)
    for name in options.systems:
        if name != OWN:
            print(name, file=sys.stderr, flush=True)
            yield peer(name, options.set, python)


def main(given: list[str]) -> None:
    """Measure and print; every option of `eval.retrieval` that is about the set works here too."""
    parser = argparse.ArgumentParser("python -m eval.peers", description=__doc__, add_help=False)
    parser.add_argument("--systems", nargs="+", default=[OWN, *SYSTEMS], choices=[OWN, *SYSTEMS])
    parser.add_argument("--venv", type=Path, default=default_cache() / "peers")
    own, rest = parser.parse_known_args(given)
    options = retrieval_arguments(rest)
    options.systems, options.venv = own.systems, own.venv
    began, load_before = datetime.now(UTC), os.getloadavg()[0]
    measured = list(results(options))
    load_after = os.getloadavg()[0]
    print(f"{began:%Y-%m-%d %H:%M} UTC, load {load_before:.1f} before, {load_after:.1f} after")
    for line in report.lines(options.set, measured):
        print(line)
    if options.json:
        about = {"at": began.isoformat(timespec="seconds"), "seed": SEED}
        report.write_json(options.json, report.document(options.set, measured, **about))


if __name__ == "__main__":
    main(sys.argv[1:])
