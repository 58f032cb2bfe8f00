"""`python -m eval.retrieval DIR`: quality and time of search on any retrieval set.

DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. Each row of the corpus is uploaded as a
Markdown document into a project of its own and goes through converter, scanner and indexer; the
queries are asked by POST /query, one at a time, 50 passages each. Figures are means over queries,
in brackets the 95 % bootstrap interval. Candidate recall: a relevant document is among the 50.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import httpx

from eval.retrieval import dated, report
from eval.retrieval.metrics import SEED
from eval.retrieval.pipeline import Loaded, Stuck, ask, load
from eval.retrieval.report import Result
from eval.retrieval.sets import BadSet, RetrievalSet, crossed, limited, read
from eval.retrieval.stacks import BadConfig, Config, outside, parsed, running


def arguments(given: list[str]) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(
        "python -m eval.retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the set")
    parser.add_argument("--cross", type=Path, metavar="DIR2", help="the corpus of another folder")
    parser.add_argument(
        "--as-of", action="store_true", help="DIR has laws in versions, each asked for by day"
    )
    parser.add_argument("--no-title", action="store_true", help="texts without their titles")
    parser.add_argument("--limit", type=_count, metavar="N", help="so many queries, spread evenly")
    parser.add_argument("--url", help="a stack that runs; its own project is deleted afterwards")
    parser.add_argument("--key", help="key of that stack (default: KB_API_KEY)")
    parser.add_argument(
        "--config", nargs="+", action="append", default=[], metavar="NAME=VALUE",
        help="compare the default with these settings; again for another configuration",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures, and each query's")
    parser.add_argument("--run", type=Path, metavar="FILE", help="rankings for tools/score.py")
    parser.add_argument(
        "--qrels", type=Path, metavar="DIR3",
        help="write the qrels that count to DIR3/qrels.tsv: with --limit or --cross, score.py "
        "gives the same figures with DIR3 as its folder",
    )  # fmt: skip
    options = parser.parse_args(given)
    options.key = options.key or os.environ.get("KB_API_KEY")
    if options.as_of and (options.cross or options.config or options.limit):
        parser.error("--as-of goes with --url, --key and --json only")
    if options.url and options.config:
        parser.error("--config starts stacks of its own: not with --url")
    if options.url and not options.key:
        parser.error("--url needs --key, or KB_API_KEY")
    try:
        options.configs = [Config(), *map(parsed, options.config)]
        options.set = None if options.as_of else _set(options)
        options.dated = dated.read(options.folder) if options.as_of else None
    except (BadConfig, BadSet) as error:
        parser.error(str(error))
    return options


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _set(options: argparse.Namespace) -> RetrievalSet:
    found = read(options.folder)
    if options.cross:
        found = crossed(found, options.cross)
    return limited(found, options.limit) if options.limit else found


def measured(options: argparse.Namespace) -> Iterator[Result]:
    """One configuration after the other."""
    if options.url:
        config = Config(without="as it runs")
        yield asyncio.run(_measure(outside(options.url, options.key), config, options, None))
        return
    with TemporaryDirectory(prefix="kb-eval-") as folder:
        first: Loaded | None = None
        for number, config in enumerate(options.configs):
            kept = first if config.keeps_index else None
            where = Path(folder) / ("0" if kept else str(number))
            where.mkdir(exist_ok=True)
            with running(where, config) as stack:
                result = asyncio.run(_measure(stack.client(), config, options, kept))
            first = first or result.loaded
            yield result


async def _measure(
    client: httpx.AsyncClient, config: Config, options: argparse.Namespace, loaded: Loaded | None
) -> Result:
    found: RetrievalSet = options.set
    client.timeout = httpx.Timeout(120)
    async with client, _project(client, delete=bool(options.url)) as project:
        if loaded is None:
            print(f"{config.name}: {len(found.documents)} documents", file=sys.stderr, flush=True)
            loaded = await load(client, project, found.documents, title=not options.no_title)
        print(f"{config.name}: {len(found.queries)} queries", file=sys.stderr, flush=True)
        return Result.of(config, found, loaded, await ask(client, loaded, found.queries))


@asynccontextmanager
async def _project(client: httpx.AsyncClient, *, delete: bool) -> AsyncIterator[str]:
    """A name that no project has. In a stack of others nothing is left of it."""
    name = f"eval-{uuid4().hex[:12]}"
    try:
        yield name
    finally:
        if delete:
            reply = await client.delete(f"/projects/{name}")
            if not reply.is_success and reply.status_code != 404:
                print(f"project {name} could not be deleted: {reply.text}", file=sys.stderr)


def by_day(options: argparse.Namespace) -> None:
    """`--as-of`: the default configuration only."""
    began, load = datetime.now(UTC), os.getloadavg()[0]
    versions, asked = options.dated

    async def judged(client: httpx.AsyncClient) -> list[dated.Judged]:
        client.timeout = httpx.Timeout(120)
        async with client, _project(client, delete=bool(options.url)) as project:
            await dated.load(client, project, versions)
            return await dated.ask(client, project, asked)

    try:
        if options.url:
            found = asyncio.run(judged(outside(options.url, options.key)))
        else:
            with (
                TemporaryDirectory(prefix="kb-eval-") as folder,
                running(Path(folder), Config()) as stack,
            ):
                found = asyncio.run(judged(stack.client()))
    except (Stuck, httpx.HTTPError) as error:
        raise SystemExit(f"no figures: {error!r}") from error
    print(f"{began:%Y-%m-%d %H:%M} UTC, load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    for line in dated.lines(options.folder.name, versions, found):
        print(line)
    if options.json:
        about = {"at": began.isoformat(timespec="seconds"), "seed": SEED}
        report.write_json(options.json, about | {"questions": dated.as_json(found)})


def main(given: list[str]) -> None:
    """Measure, print, write the files that are asked for."""
    options = arguments(given)
    if options.as_of:
        by_day(options)
        return
    began, load_before = datetime.now(UTC), os.getloadavg()[0]
    try:
        results = list(measured(options))
    except (Stuck, httpx.HTTPError) as error:
        raise SystemExit(f"no figures: {error!r}") from error
    load_after = os.getloadavg()[0]
    print(f"{began:%Y-%m-%d %H:%M} UTC, load {load_before:.1f} before, {load_after:.1f} after")
    for line in report.lines(options.set, results):
        print(line)
    if options.json:
        about = {
            "at": began.isoformat(timespec="seconds"),
            "load": [load_before, load_after],
            "title": not options.no_title,
            "seed": SEED,
        }
        report.write_json(options.json, report.document(options.set, results, **about))
    if options.run:
        report.write_runs(options.run, results)
    if options.qrels:
        report.write_qrels(options.qrels, options.set)


def _ended(*_: object) -> None:
    raise SystemExit("ended from outside")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _ended)  # not without stopping the stack
    main(sys.argv[1:])
