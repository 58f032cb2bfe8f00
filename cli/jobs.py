"""`kb job`: end or repeat an ingest; `kb doc delete`: erase a document."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import show as view
from cli.datadir import DataDir
from cli.output import clean, out, path_part, raw
from contracts.http import Deleted, DocumentView, JobChanged, JobView

app = typer.Typer(no_args_is_help=True, help="Ingests: show, cancel, retry.")

Id = Annotated[str, typer.Argument(metavar="ID", help="A job, as kb jobs lists it.")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DATA = Path("data")


@app.command()
def show(id_: Id, data: Data = DATA, json_: Json = False) -> None:
    """Where an ingest is: whose turn it is, until when, and what happens next."""
    reply = _call(data, "GET", f"/jobs/{path_part(id_)}")
    raw(reply.content) if json_ else view.job(JobView.model_validate_json(reply.content))


@app.command()
def cancel(id_: Id, data: Data = DATA, json_: Json = False) -> None:
    """End an ingest. One that is over stays as it is."""
    reply = _call(data, "POST", f"/jobs/{path_part(id_)}/cancel")
    if json_:
        raw(reply.content)
        return
    changed = JobChanged.model_validate_json(reply.content)
    out("cancelled" if changed.changed else f"was over already: {changed.status}")


@app.command()
def retry(id_: Id, data: Data = DATA, json_: Json = False) -> None:
    """Try the document of an ingest again, as a new job; prints the id of that job.

    A job that runs is cancelled first. A version that is indexed is parsed again; its passages
    stay searchable until the new ones are in.
    """
    reply = _call(data, "POST", f"/jobs/{path_part(id_)}/retry")
    if json_:
        raw(reply.content)
        return
    changed = JobChanged.model_validate_json(reply.content)
    told = "attempt" if changed.changed else "was tried again already: attempt"
    out(f"{changed.job_id}  {told} {changed.attempt}")


def delete(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A document, or one of its versions.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Erase a document: all versions, its bytes and texts, and what was attached to it."""
    path = f"/documents/{path_part(id_)}"
    if not yes:
        found = DocumentView.model_validate_json(_call(data, "GET", path).content)
        typer.confirm(_question(found), abort=True, err=True)
    reply = _call(data, "DELETE", path)
    if json_:
        raw(reply.content)
        return
    done = Deleted.model_validate_json(reply.content)
    others = len(done.documents) - 1
    attached = f", {others} attached to it" if others else ""
    jobs = f", {done.jobs_cancelled} jobs cancelled" if done.jobs_cancelled else ""
    out(f"erased: {done.versions} versions, {done.blobs} files{attached}{jobs}")


def _question(found: DocumentView) -> str:
    name = clean(found.title or found.name, one_line=True)
    attached = f" and {len(found.attachments)} attached documents" if found.attachments else ""
    return f"Erase {name!r} with {len(found.versions)} versions{attached}, for ever?"


def _call(data: Path, method: str, path: str) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path)
