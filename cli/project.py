"""`kb project`: knowledge bases, and how each works."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, clean, out, path_part, raw
from contracts.http import ProjectGone, ProjectList, ProjectView

app = typer.Typer(
    no_args_is_help=True, help="Knowledge bases: list, make, name, set, show and delete."
)

Name = Annotated[str, typer.Argument(metavar="PROJECT")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Title = Annotated[str | None, typer.Option("--title", help="What people call it.")]
Chunking = Annotated[
    str | None,
    typer.Option("--chunking", help="heading: by headings and tokens; paragraph: 2,000 letters."),
]
LanguageCheck = Annotated[
    bool | None,
    typer.Option("--language-check/--no-language-check", help="Refuse other languages, or not."),
]
Languages = Annotated[str | None, typer.Option("--languages", help="Taken in, by code: en,de,sr.")]
Scan = Annotated[str | None, typer.Option("--scan", help="full; rules: without the learned layer.")]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help="A name of KB_EMBEDDERS, or default; kb rebuild.")
]
DATA = Path("data")


@app.command("list")
def list_(data: Data = DATA, json_: Json = False) -> None:
    """All of them, and how much is in each."""
    reply = _call(data, "GET", "/projects")
    if json_:
        raw(reply.content)
        return
    projects = ProjectList.model_validate_json(reply.content).projects
    wide = max((len(p.project) for p in projects), default=0)
    for p in projects:
        more = f", {p.review} in review" if p.review else ""
        more += f", {p.running} jobs run" if p.running else ""
        title = f"  {clean(p.title)}" if p.title != p.project else ""
        held = f"{p.documents} documents, {p.indexed} versions indexed"
        out(f"{p.project:<{wide}}  {held}{more}{title}")
    if not projects:
        out("none yet: kb ingest, or kb project create")


@app.command()
def show(project: Name = "default", data: Data = DATA, json_: Json = False) -> None:
    """The settings in force."""
    _show(_call(data, "GET", _path(project)), json_=json_)


@app.command()
def create(  # noqa: PLR0913, PLR0917 - every option is a parameter
    project: Name,
    title: Title = None,
    chunking: Chunking = None,
    language_check: LanguageCheck = None,
    languages: Languages = None,
    scan: Scan = None,
    embedder: Embedder = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Make one. (An upload makes one too, with the settings that nobody changed.)"""
    asked = _settings(title, chunking, language_check, languages, scan, embedder)
    _show(_call(data, "POST", "/projects", json=asked | {"project": project}), json_=json_)


@app.command("set")
def set_(
    project: Name,
    chunking: Chunking = None,
    language_check: LanguageCheck = None,
    languages: Languages = None,
    scan: Scan = None,
    embedder: Embedder = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Change settings; they hold for what comes in from now on. kb rebuild changes the rest, and
    the embedder, from which on new documents have it too."""
    change = _settings(None, chunking, language_check, languages, scan, embedder)
    if not change:
        raise CliError("nothing to change", "see kb project set --help")
    _show(_call(data, "PUT", _path(project), json=change), json_=json_)


@app.command()
def rename(project: Name, title: str, data: Data = DATA, json_: Json = False) -> None:
    """Call it otherwise. Its id stays, and so does every citation."""
    _show(_call(data, "PUT", _path(project), json={"title": title}), json_=json_)


@app.command()
def delete(
    project: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Close it and erase all that is in it, for good. Refused while its jobs run."""
    if not yes:
        question = f"Erase the project {clean(project)} with all its documents, for good?"
        typer.confirm(question, abort=True, err=True)
    reply = _call(data, "DELETE", _path(project), timeout=None)
    if json_:
        raw(reply.content)
        return
    gone = ProjectGone.model_validate_json(reply.content)
    out(f"erased: {gone.documents} documents, {gone.versions} versions, {gone.blobs} blobs")


def _settings(
    title: str | None,
    chunking: str | None,
    language_check: bool | None,
    languages: str | None,
    scan: str | None,
    embedder: str | None,
) -> dict[str, Any]:
    codes = None if languages is None else [c.strip() for c in languages.split(",") if c.strip()]
    given = {"title": title, "chunking": chunking, "language_check": language_check,
             "accepted_languages": codes, "scan": scan, "embedder": embedder}  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _path(project: str) -> str:
    return f"/projects/{path_part(project)}"


def _call(data: Path, method: str, path: str, **options: Any) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path, **options)


def _show(reply: Any, *, json_: bool) -> None:
    if json_:
        raw(reply.content)
        return
    view = ProjectView.model_validate_json(reply.content)
    out(f"{'project':<20} {view.project}{' (deleted)' if view.state == 'deleted' else ''}")
    out(f"{'title':<20} {clean(view.title)}")
    out(f"{'chunking':<20} {view.chunking}")
    out(f"{'language check':<20} {'on' if view.language_check else 'off'}")
    languages = view.accepted_languages
    out(f"{'accepted languages':<20} {', '.join(languages) if languages else 'all known'}")
    out(f"{'embedder':<20} {clean(view.embedder)}")
    out(f"{'scan':<20} {'rules and learned layer' if view.scan == 'full' else 'rules alone'}")
