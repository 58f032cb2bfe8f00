"""`kb`: the command line."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import stack
from cli.backup import backup
from cli.context import context
from cli.convert import convert
from cli.datadir import DataDir
from cli.diff import diff
from cli.doctor import doctor
from cli.erase import app as erase_app
from cli.erase import scrub
from cli.export import export
from cli.history import history
from cli.importing import import_
from cli.jobs import app as jobs_app
from cli.jobs import delete
from cli.mirror import mirror
from cli.output import CliError, as_json, note, out, path_part, raw
from cli.passage import passage
from cli.project import app as project_app
from cli.query import query
from cli.replay import replay
from cli.rescan import rescan
from cli.restore import restore
from cli.review import app as review_app
from cli.scan import scan
from cli.taxonomy import app as taxonomy_app
from cli.verify import verify
from cli.why import why

app = typer.Typer(
    name="kb",
    help="A knowledge base that models can cite.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
doc = typer.Typer(
    no_args_is_help=True, help="Documents: list, show, summary, journal, body, delete."
)
app.add_typer(doc, name="doc")
app.add_typer(jobs_app, name="job")
app.add_typer(erase_app, name="erase")
doc.command("delete")(delete)
app.add_typer(project_app, name="project")
app.add_typer(review_app, name="review")
app.add_typer(taxonomy_app, name="taxonomy")

Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Project = Annotated[str, typer.Option("--project", help="The knowledge base.")]
AnyProject = Annotated[str | None, typer.Option("--project", help="Only this knowledge base.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500)]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="What was valid on that day (or instant).")
]
RecordedAsOf = Annotated[
    str | None, typer.Option("--recorded-as-of", help="By what was known on that day.")
]
DATA = Path("data")


def _dir(path: Path) -> DataDir:
    return DataDir(path.absolute())


# -- the stack ---------------------------------------------------------------------------------


@app.command()
def up(
    data: Data = DATA,
    detach: Annotated[bool, typer.Option("--detach", help="Return when healthy.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port of the front door.")
    ] = None,
    json_: Json = False,
    notify_fd: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None,
) -> None:
    """Run everything on this machine until Ctrl-C; prints the URL when it is healthy."""
    if detach:
        stack.up_detached(_dir(data), port=port, json_=json_)
    else:
        stack.up(_dir(data), port=port, notify_fd=notify_fd, json_=json_)


@app.command()
def down(data: Data = DATA, json_: Json = False) -> None:
    """Stop what `kb up` started."""
    stack.down(_dir(data), json_=json_)


@app.command()
def status(data: Data = DATA, json_: Json = False) -> None:
    """Addresses, process ids and health. Exit 0 healthy, 1 something is not, 3 not running."""
    raise typer.Exit(stack.status(_dir(data), json_=json_))


@app.command()
def run(services: list[str], data: Data = DATA, json_: Json = False) -> None:
    """Run services in this process. Settings come from the environment (`KB_*`)."""
    from contracts.flow import SERVICES
    from kernel.service import run_services
    from kernel.settings import Settings

    if strange := set(services) - {*SERVICES, "relay"}:
        known = ", ".join((*SERVICES, "relay"))
        raise CliError("no such service", f"{', '.join(sorted(strange))}; there are {known}")
    given = {"data": data} | ({"log_format": "json"} if json_ else {})
    settings = Settings.model_validate(given)
    asyncio.run(run_services(services, settings))


app.command()(convert)
app.command()(diff)
app.command()(history)
app.command()(scan)
app.command()(rescan)
app.command()(replay)
app.command()(doctor)
app.command()(scrub)
app.command()(backup)
app.command()(restore)
app.command()(verify)
app.command()(export)
app.command("import")(import_)
app.command()(mirror)


# -- documents ---------------------------------------------------------------------------------


@app.command()
def ingest(  # noqa: PLR0913, PLR0917 - every option is a parameter
    files: list[Path],
    data: Data = DATA,
    project: Project = "default",
    source: Annotated[
        str | None,
        typer.Option("--source", help="Name of the source: its next version gets the same."),
    ] = None,
    supersedes: Annotated[
        str | None,
        typer.Option("--supersedes", help="A document or version that this one replaces."),
    ] = None,
    valid_from: Annotated[
        str | None, typer.Option("--valid-from", help="A day, or an instant with zone.")
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Index whatever the scanner finds; for admins.")
    ] = False,
    lane: Annotated[str, typer.Option("--lane", help="live, or bulk for large imports.")] = "live",
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the index.")] = False,
    json_: Json = False,
) -> None:
    """Send files. Exit 0 only if every file is indexed or known already (`duplicate`)."""
    for option, value in (("--source", source), ("--supersedes", supersedes)):
        if value and len(files) > 1:
            raise CliError(f"{option} names one document", f"{len(files)} files were given")
    if valid_from is not None:
        _moment("--valid-from", valid_from)
    given = {
        "project": project, "source": source, "supersedes": supersedes, "valid_from": valid_from,
        "trusted": "true" if trusted else None, "lane": lane if lane != "live" else None,
    }  # fmt: skip
    fields = {name: value for name, value in given.items() if value is not None}
    outcomes = asyncio.run(_ingest(_dir(data), files, fields, wait=not no_wait, json_=json_))
    ok = all(o.ok for o in outcomes)
    if json_:
        as_json({"ok": ok, "files": [o.as_dict() for o in outcomes]})
    raise typer.Exit(0 if ok else 1)


async def _ingest(
    data: DataDir, files: list[Path], fields: dict[str, str], *, wait: bool, json_: bool
) -> list[Any]:
    from cli.client import async_client
    from cli.ingest import Ingest
    from cli.progress import Bars, Lines, Silent

    async with async_client(data) as http:
        if not json_ and sys.stdout.isatty() and sys.stderr.isatty():
            with Bars() as bars:
                return await Ingest(http, fields, bars).run(files, wait=wait)
        view = Silent() if json_ else Lines()
        return await Ingest(http, fields, view).run(files, wait=wait)


app.command()(query)
app.command()(context)
app.command()(why)


@doc.command("list")
def doc_list(  # noqa: PLR0913, PLR0917 - every option is a parameter
    data: Data = DATA,
    project: AnyProject = None,
    limit: Limit = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="The `next` of a page.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="Only these: indexed, review, failed, …")
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Only those that an administrator trusted, and who.")
    ] = False,
    source: Annotated[
        str | None, typer.Option("--source", help="Only those of that source key or file name.")
    ] = None,
    as_of: AsOf = None,
    recorded_as_of: RecordedAsOf = None,
    json_: Json = False,
) -> None:
    """Documents, newest first: id, status, passages, title. With --as-of the base of that day."""
    from cli import show
    from contracts.http import DocumentPage

    given = {
        "status": status, "trusted": "true" if trusted else None, "source": source,
        "as_of": as_of, "recorded_as_of": recorded_as_of,
    }  # fmt: skip
    which = {name: value for name, value in given.items() if value is not None}
    reply = _call(data, "GET", "/documents", params=_page(project, limit, cursor) | which)
    if json_:
        raw(reply.content)
        return
    page = DocumentPage.model_validate_json(reply.content)
    show.documents(page)
    _more(page.next)


@doc.command("show")
def doc_show(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    as_of: AsOf = None,
    recorded_as_of: RecordedAsOf = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """The manifest of a document and its versions."""
    from cli import show
    from contracts.http import DocumentView

    params = _times(as_of, recorded_as_of)
    reply = _call(data, "GET", f"/documents/{path_part(id_)}", params=params)
    raw(reply.content) if json_ else show.document(DocumentView.model_validate_json(reply.content))


@doc.command("journal")
def doc_journal(
    id_: Annotated[str, typer.Argument(metavar="ID")], data: Data = DATA, json_: Json = False
) -> None:
    """Everything that happened to a document, oldest first."""
    from cli import show
    from contracts.http import Journal

    reply = _call(data, "GET", f"/documents/{path_part(id_)}/journal")
    raw(reply.content) if json_ else show.journal(Journal.model_validate_json(reply.content))


@doc.command("body")
def doc_body(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    as_of: AsOf = None,
    recorded_as_of: RecordedAsOf = None,
    front_matter: Annotated[
        bool, typer.Option("--front-matter", help="With what it is and when it is valid, in YAML.")
    ] = False,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """The canonical Markdown of a version, byte for byte (made harmless on a terminal)."""
    from cli.output import clean

    params = _times(as_of, recorded_as_of) | ({"front_matter": "true"} if front_matter else {})
    reply = _call(data, "GET", f"/documents/{path_part(id_)}/body", params=params)
    if json_:
        as_json({"id": id_, "body": reply.content.decode("utf-8", errors="replace")})
    elif sys.stdout.isatty():
        out(clean(reply.content.decode("utf-8", errors="replace")))
    else:
        raw(reply.content)


doc.command("passage")(passage)


@doc.command("summary")
def doc_summary(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    as_of: AsOf = None,
    recorded_as_of: RecordedAsOf = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """A version in short: one sentence, then its outline with the best of each section."""
    from cli import show
    from contracts.summaries import SummaryView

    params = _times(as_of, recorded_as_of)
    reply = _call(data, "GET", f"/documents/{path_part(id_)}/summary", params=params)
    raw(reply.content) if json_ else show.summary(SummaryView.model_validate_json(reply.content))


@doc.command("places")
def doc_places(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    start: Annotated[int, typer.Option("--start", min=0, help="First byte of the body.")] = 0,
    end: Annotated[int | None, typer.Option("--end", min=1, help="Byte behind the last.")] = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Where in the original a part of the body came from: page and box, cells, path, lines."""
    from cli import show
    from contracts.http import Places

    given = {"start": start, "end": end}
    params = {name: value for name, value in given.items() if value is not None}
    reply = _call(data, "GET", f"/documents/{path_part(id_)}/places", params=params)
    raw(reply.content) if json_ else show.places(Places.model_validate_json(reply.content))


@doc.command("source")
def doc_source(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    to: Annotated[Path, typer.Option("--out", help="File to write; - is standard output.")],
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """The original, byte for byte, as it was sent."""
    from cli.client import download

    size = download(_dir(data), f"/documents/{path_part(id_)}/source", to)
    if json_:
        as_json({"id": id_, "out": str(to), "size_bytes": size})


@app.command()
def jobs(
    data: Data = DATA,
    project: AnyProject = None,
    limit: Limit = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="The `next` of a page.")] = None,
    json_: Json = False,
) -> None:
    """Ingests, newest first."""
    from cli import show
    from contracts.http import JobPage

    reply = _call(data, "GET", "/jobs", params=_page(project, limit, cursor))
    if json_:
        raw(reply.content)
        return
    page = JobPage.model_validate_json(reply.content)
    show.jobs(page)
    _more(page.next)


@app.command()
def events(
    data: Data = DATA,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    after: Annotated[int, typer.Option("--after", min=0, help="Only after this position.")] = 0,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Only these: Parsed, Erased, …")
    ] = None,
    project: AnyProject = None,
    stream_id: Annotated[
        str | None, typer.Option("--stream", help="Only this stream: document-…, version-…")
    ] = None,
    json_: Json = False,
) -> None:
    """The facts, in order. With --json one event a line."""
    from cli import show
    from cli.events import stream

    given = {"type": type_ or None, "project": project, "stream": stream_id}
    which = {name: value for name, value in given.items() if value is not None}
    for event in stream(_dir(data), follow=follow, after=after, which=which):
        out(event.data) if json_ else show.event(json.loads(event.data))


@app.command()
def rebuild(
    data: Data = DATA,
    project: Project = "default",
    all_projects: Annotated[bool, typer.Option("--all-projects")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Bring back the generation that stands by.")
    ] = False,
    recut: Annotated[bool, typer.Option("--recut", help="Cut every body anew.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only show the generations.")] = False,
    json_: Json = False,
) -> None:
    """Make the projections anew from the log and the caches; searches go on meanwhile.

    Where the project's chunking or embedder was changed, this is what changes the index to it.
    """
    import httpx

    from cli import show
    from contracts.generations import GenerationList, RebuildReply

    if list_:
        reply = _call(
            data, "GET", "/generations", params={} if all_projects else {"project": project}
        )
        listed = GenerationList.model_validate_json(reply.content)
        raw(reply.content) if json_ else show.generations(listed)
        return
    if rollback and (all_projects or recut):
        raise typer.BadParameter("--rollback is of one project, and cuts nothing")
    if all_projects:
        _call(data, "POST", "/projections/read/rebuild", timeout=httpx.Timeout(None, connect=5))
    body: dict[str, Any] = {"project": None if all_projects else project}
    body |= {name: True for name, on in (("rollback", rollback), ("recut", recut)) if on}
    reply = _call(data, "POST", "/rebuild", json=body, timeout=httpx.Timeout(None, connect=5))
    raw(reply.content) if json_ else show.rebuilt(RebuildReply.model_validate_json(reply.content))


@app.command()
def lang(
    files: Annotated[list[Path] | None, typer.Argument(help="Text files.")] = None,
    jsonl: Annotated[
        str | None, typer.Option("--jsonl", help='Rows {"text": …}; - reads standard input.')
    ] = None,
    json_: Json = False,
) -> None:
    """Which language texts are in, without a running stack. Exit 2 when a row was no row."""
    from cli import lang as language

    if (jsonl is None) == (not files):
        raise CliError("give text files, or --jsonl with one file of rows")
    if jsonl is not None:
        raise typer.Exit(0 if language.rows(jsonl) else 2)
    language.files(files or [], json_=json_)


# -- helpers -----------------------------------------------------------------------------------


def _call(data: Path, method: str, path: str, **options: Any) -> Any:
    from cli.client import call

    return call(_dir(data), method, path, **options)


def _times(as_of: str | None, recorded_as_of: str | None) -> dict[str, str]:
    given = {"as_of": as_of, "recorded_as_of": recorded_as_of}
    return {name: value for name, value in given.items() if value is not None}


def _moment(option: str, value: str) -> None:
    """Check a day or an instant before anything is sent."""
    from pydantic import TypeAdapter, ValidationError

    from contracts.http import ValidFrom

    try:
        TypeAdapter(ValidFrom).validate_python(value)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise CliError(
            f"{option} is no day and no instant with zone", f"{value}: {reason}"
        ) from None


def _page(project: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    given = {"project": project, "limit": limit, "cursor": cursor}
    return {name: value for name, value in given.items() if value is not None}


def _more(cursor: str | None) -> None:
    if cursor:
        note(f"more: --cursor {cursor}")


def main(argv: list[str] | None = None) -> None:
    """Entry point of `kb`. Exit 1 and one line for an error, 2 for wrong usage, 130 for Ctrl-C."""
    words = sys.argv[1:] if argv is None else argv
    try:
        app(words, prog_name="kb")
    except CliError as error:
        if "--json" in words:
            out(error.document())
        else:
            note(error.line())
        sys.exit(1)
    except UnicodeEncodeError:
        note("error: an argument is not valid UTF-8")
        sys.exit(1)
    except (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
        note(f"error: {error.strerror}: {error.filename}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) went away; nothing more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
