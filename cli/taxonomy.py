"""`kb taxonomy`: the classes that a knowledge base puts its documents into."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, as_json, clean, out, path_part, raw
from contracts.taxonomy import Reclassified, TaxonomyView

app = typer.Typer(no_args_is_help=True, help="Classes of documents: show, set, apply.")

Project = Annotated[str, typer.Option("--project", help="The knowledge base.")]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DATA = Path("data")


@app.command()
def show(project: Project = "default", data: Data = DATA, json_: Json = False) -> None:
    """The classes in force."""
    _show(_call(data, "GET", _path(project)), json_=json_)


@app.command("set")
def set_(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False)],
    project: Project = "default",
    data: Data = DATA,
    json_: Json = False,
) -> None:
    """Set the classes: a YAML or JSON file with `classes` (each with a `name` and, if you like, a
    `description` and `keywords`) and, if you like, `threshold`. New documents get them at once;
    kb taxonomy apply gives them to those that are there."""
    _show(_call(data, "PUT", _path(project), json=_read(file)), json_=json_)


@app.command()
def apply(project: Project = "default", data: Data = DATA, json_: Json = False) -> None:
    """Classify what is there by the classes in force. Nothing is embedded anew."""
    done, classes = _apply(data, project), Counter[str]()
    classes.update(done.classes)
    while done.left:
        done = _apply(data, project)
        classes.update(done.classes)
    if json_:
        whole = {"classes": dict(classes), "classified": classes.total()}
        as_json(done.model_copy(update=whole).model_dump(mode="json"))
        return
    for name, count in sorted(classes.items(), key=lambda c: (-c[1], c[0])):
        out(f"{count:>6}  {clean(name, one_line=True)}")
    without = f", {done.without_summary} have no summary (kb rebuild)"
    more = without if done.without_summary else ""
    known = done.known + done.classified - classes.total()
    out(f"{classes.total()} classified, {known} were already{more}")


def _apply(data: Path, project: str) -> Reclassified:
    reply = _call(data, "POST", f"{_path(project)}/apply", timeout=300.0)
    return Reclassified.model_validate_json(reply.content)


def _read(file: Path) -> Any:
    text = file.read_text("utf-8")
    try:
        return json.loads(text) if file.suffix == ".json" else _yaml(text)
    except ValueError as error:
        raise CliError("cannot read the file", f"{file}: {error}") from error


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _path(project: str) -> str:
    return f"/projects/{path_part(project)}/taxonomy"


def _show(reply: Any, *, json_: bool) -> None:
    if json_:
        raw(reply.content)
        return
    view = TaxonomyView.model_validate_json(reply.content)
    for one in view.classes:
        words = f"  ({', '.join(one.keywords)})" if one.keywords else ""
        out(clean(f"{one.name:<24} {one.description}{words}", one_line=True))
    when = f"set {view.set_at:%Y-%m-%d} by {clean(view.actor, one_line=True)}"
    out(f"{len(view.classes)} classes, threshold {view.threshold}, {when}")


def _call(data: Path, method: str, path: str, **request: Any) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path, **request)
