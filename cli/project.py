"""`kb project`: how a knowledge base works."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, out, raw

app = typer.Typer(no_args_is_help=True, help="Knowledge bases: show and change their settings.")

Name = Annotated[str, typer.Argument(metavar="PROJECT")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DATA = Path("data")


@app.command()
def show(project: Name = "default", data: Data = DATA, json_: Json = False) -> None:
    """The settings in force."""
    _show(_call(data, "GET", project), json_=json_)


@app.command("set")
def set_(
    project: Name,
    chunking: Annotated[
        str | None,
        typer.Option(
            "--chunking", help="heading: by headings and tokens; paragraph: 2,000 characters."
        ),
    ] = None,
    language_check: Annotated[
        bool | None,
        typer.Option(
            "--language-check/--no-language-check", help="Refuse other languages, or not."
        ),
    ] = None,
    languages: Annotated[
        str | None, typer.Option("--languages", help="Taken in, by code: en,de,sr.")
    ] = None,
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Change settings; they hold for what comes in from now on."""
    codes = None if languages is None else [c.strip() for c in languages.split(",") if c.strip()]
    given = {"chunking": chunking, "language_check": language_check, "accepted_languages": codes}
    change = {name: value for name, value in given.items() if value is not None}
    if not change:
        raise CliError("nothing to change", "see kb project set --help")
    _show(_call(data, "PUT", project, json=change), json_=json_)


def _call(data: Path, method: str, project: str, **options: Any) -> Any:
    from urllib.parse import quote

    from cli.client import call

    path = f"/projects/{quote(project, safe='')}"
    return call(DataDir(data.absolute()), method, path, **options)


def _show(reply: Any, *, json_: bool) -> None:
    if json_:
        raw(reply.content)
        return
    settings = reply.json()
    languages = settings["accepted_languages"]
    out(f"{'project':<20} {settings['project']}")
    out(f"{'chunking':<20} {settings['chunking']}")
    out(f"{'language check':<20} {'on' if settings['language_check'] else 'off'}")
    out(f"{'accepted languages':<20} {', '.join(languages) if languages else 'all known'}")
