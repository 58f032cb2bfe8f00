"""`kb erase`: a document, bytes or a person goes for good; `kb scrub`: so do the traces."""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, as_json, clean, note, out, path_part, raw
from cli.owner import stores
from contracts.erasure import ErasePlan, Erasure, PersonErased

app = typer.Typer(
    no_args_is_help=True, help="Erase for good: a document, bytes, a person. receipt: what went."
)

Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until every service has removed its part.")
]
Scrub = Annotated[
    bool | None,
    typer.Option(
        "--scrub/--no-scrub",
        help="Write the database's files anew afterwards; unset: if they are small (kb scrub).",
    ),
]
DATA = Path("data")
PATIENCE_S = 120.0
"""How long `--wait` waits."""
SMALL_BYTES = 64 * 1024 * 1024
"""Tables up to this size are written anew without being asked, within a few seconds."""


@app.command()
def document(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A document, or one of its versions.")],
    data: Data = DATA,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    scrub: Scrub = None,
    json_: Json = False,
) -> None:
    """Erase a document: all versions, their bytes, texts, vectors and names, and what was attached.

    Prints the receipt. Exit 1 if it is not complete: a service is down, and goes on when it is up.
    """
    _erase(data, {"document": id_}, yes=yes, dry_run=dry_run, after=(wait, scrub), json_=json_)


@app.command()
def source(
    sha256: Annotated[str, typer.Argument(metavar="SHA256", help="Hash of the bytes.")],
    project: Annotated[str, typer.Option("--project", help="The knowledge base.")] = "default",
    data: Data = DATA,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    scrub: Scrub = None,
    json_: Json = False,
) -> None:
    """Erase certain bytes, in every document of a project that has them."""
    asked = {"source": sha256.lower(), "project": project}
    _erase(data, asked, yes=yes, dry_run=dry_run, after=(wait, scrub), json_=json_)


@app.command()
def person(
    who: Annotated[str, typer.Argument(metavar="NAME|ACTOR", help="A name, or actor:….")],
    data: Data = DATA,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Erase a person's account: sessions end at once, and the log keeps an opaque id."""
    if not yes:
        typer.confirm(f"Erase the account {clean(who, one_line=True)!r}?", abort=True, err=True)
    reply = _call(data, "POST", "/erasures/person", json={"person": who})
    if json_:
        raw(reply.content)
        return
    done = PersonErased.model_validate_json(reply.content)
    told = f"erased, {done.sessions} sessions ended" if done.changed else "was erased already"
    out(f"{done.actor}: {told}; it is shown as deleted-user")


@app.command()
def receipt(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A document, or an erasure.")],
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """What an erasure removed where, and what is still open."""
    reply = _call(data, "GET", f"/erasures/{path_part(id_)}")
    raw(reply.content) if json_ else tell(Erasure.model_validate_json(reply.content))


def scrub(data: Data = DATA, json_: Json = False) -> None:
    """Make the files of the database forget what was deleted: for its owner, on its machine.

    Tables are written anew, one after the other; while that is so nobody can read them. Blobs that
    no event names are deleted when they are a day old. Vectors of the embedded engine go from its
    files when their generation goes, by `kb rebuild`.
    """
    done = _scrub(data, quiet=json_) | {"unnamed_blobs": asyncio.run(_sweep(data))}
    told = f"clean up to position {done['position']}; {done['unnamed_blobs']} unnamed blobs deleted"
    as_json(done) if json_ else out(told)


async def _sweep(data: Path) -> int:
    from kernel.sweep import sweep

    async with stores(DataDir(data.absolute())) as opened:  # noqa: ASYNC240 - no other task runs
        return await sweep(opened.dsn, opened.blobs)


def _erase(
    data: Path,
    asked: dict[str, str],
    *,
    yes: bool,
    dry_run: bool,
    after: tuple[bool, bool | None],
    json_: bool,
) -> None:
    if dry_run or not yes:
        reply = _call(data, "POST", "/erasures/plan", json=asked)
        plan = ErasePlan.model_validate_json(reply.content)
        if dry_run and json_:
            raw(reply.content)
        if dry_run and not json_:
            tell_plan(plan)
        if dry_run:
            return
        typer.confirm(question(plan), abort=True, err=True)
    content = _call(data, "POST", "/erasures", json=asked).content
    wait, scrubs = after
    if wait:
        content = _waited(data, Erasure.model_validate_json(content), content)
    if wait and Erasure.model_validate_json(content).complete and _may_scrub(data, scrubs):
        _scrub(data, quiet=json_)
        id_ = Erasure.model_validate_json(content).id
        content = _call(data, "GET", f"/erasures/{path_part(id_)}").content
    done = Erasure.model_validate_json(content)
    raw(content) if json_ else tell(done)
    if wait and not done.complete:
        raise typer.Exit(1)


def _waited(data: Path, done: Erasure, content: bytes) -> bytes:
    """The receipt when it is complete, or as it is when nobody knows how long that takes."""
    deadline = time.monotonic() + PATIENCE_S
    while not done.complete and time.monotonic() < deadline:
        time.sleep(0.2)
        content = bytes(_call(data, "GET", f"/erasures/{path_part(done.id)}").content)
        done = Erasure.model_validate_json(content)
    return content


def tell_plan(plan: ErasePlan) -> None:
    """One line a document, then the sums."""
    for target in plan.documents:
        name = clean(target.name, one_line=True)
        stay = f", {target.stay} stay" if target.stay else ""
        attached = "  (attached)" if target.attached else ""
        out(f"{target.document_id}  {len(target.versions)} versions{stay}  {name}{attached}")
    kept = f"; {plan.kept} files stay, other documents have them too" if plan.kept else ""
    jobs = f"; {plan.jobs} jobs would be cancelled" if plan.jobs else ""
    out(f"{plan.versions} versions, {plan.blobs} files would go{kept}{jobs}")


def question(plan: ErasePlan) -> str:
    """What a person is asked."""
    names = [clean(t.name, one_line=True) for t in plan.documents if not t.attached]
    attached = sum(t.attached for t in plan.documents)
    what = repr(names[0]) if len(names) == 1 else f"{len(names)} documents"
    more = f" and {attached} attached documents" if attached else ""
    return f"Erase {what}{more}: {plan.versions} versions, {plan.blobs} files, for ever?"


def tell(done: Erasure) -> None:
    """The receipt: what went, what stays since others have it, what is open."""
    state = f"complete at {done.done_at:%Y-%m-%d %H:%M:%S}" if done.done_at else "not complete"
    out(f"erasure {done.id}: {len(done.versions)} versions, {state}")
    for name, n in done.removed.items():
        out(f"  removed  {n:>6}  {name}")
    for name, n in done.kept.items():
        out(f"  kept     {n:>6}  {name} (other documents have the same)")
    for name, n in done.open.items():
        service = {"bytes": "ingest", "index": "indexer"}[name]
        out(f"  open     {n:>6}  {name}: {service} has not said yet that it is done")
    if done.complete:
        files = "written anew since" if done.files == "clean" else "not written anew yet: kb scrub"
        out(f"  files of the database: {files}")


def _may_scrub(data: Path, asked: bool | None) -> bool:
    """As asked; else where the database is at hand and small."""
    if asked is not None:
        return asked
    from kernel.scrub import weight

    folder = DataDir(data.absolute())

    async def weigh() -> int:
        async with stores(folder) as opened:
            return await weight(opened.dsn) if opened.up else SMALL_BYTES + 1

    try:
        return asyncio.run(weigh()) <= SMALL_BYTES
    except (CliError, OSError):
        return False  # it is another machine's: its owner does it there


def _scrub(data: Path, *, quiet: bool) -> dict[str, Any]:
    import asyncpg

    from kernel.scrub import Scrubbed
    from kernel.scrub import scrub as scrub_

    def told(table: str) -> None:
        if not quiet:
            note(f"{table} …")

    folder = DataDir(data.absolute())

    async def work() -> Scrubbed:
        async with stores(folder) as opened:
            return await scrub_(opened.dsn, told)

    try:
        done = asyncio.run(work())
    except TimeoutError:
        raise CliError("not scrubbed", "a transaction is open for too long; try again") from None
    except (OSError, asyncpg.PostgresError) as error:
        raise CliError("not scrubbed", str(error)) from error
    if not done.wal and not quiet:
        note("the write-ahead log was not begun anew: only a superuser may")
    return asdict(done)


def _call(data: Path, method: str, path: str, **options: Any) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path, **options)
