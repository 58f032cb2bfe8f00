"""`kb review`: what waits for a person, the findings in the text that was judged, the decision."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.datadir import DataDir
from cli.output import CliError, clean, note, out, path_part, raw
from contracts.http import (
    DocumentPage,
    DocumentView,
    Reviewed,
    ReviewFinding,
    ReviewText,
    ReviewView,
    VersionView,
)

app = typer.Typer(
    no_args_is_help=True, help="Documents in quarantine: list, show, release, reject."
)

Id = Annotated[
    str, typer.Argument(metavar="ID", help="A version, or its document if one version waits.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")]
Text = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="HASH",
        help="The text that you looked at (kb review show): decide about no other.",
    ),
]
Data = Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DATA = Path("data")
SHORTEST = 8
"""Digits of a hash that name a text."""
_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan"}


@app.command("list")
def list_(
    data: Data = DATA,
    project: Annotated[
        str | None, typer.Option("--project", help="Only this knowledge base.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500)] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="The `next` of a page.")] = None,
    json_: Json = False,
) -> None:
    """What waits, newest first: version, since when, worst finding, score, project, name."""
    given = {"status": "review", "project": project, "limit": limit, "cursor": cursor}
    params = {name: value for name, value in given.items() if value is not None}
    reply = _call(data, "GET", "/documents", params=params)
    if json_:
        raw(reply.content)
        return
    page = DocumentPage.model_validate_json(reply.content)
    if not page.documents:
        out("nothing waits")
    for version in page.documents:
        _row(version)
    if page.next:
        note(f"more: --cursor {page.next}")


@app.command()
def show(id_: Id, data: Data = DATA, json_: Json = False) -> None:
    """The findings of a version that waits, each with its reason, and the text around them."""
    version = _version(data, id_)
    reply = _call(data, "GET", f"/review/{version}")
    if json_:
        raw(reply.content)
        return
    view = ReviewView.model_validate_json(reply.content)
    _show(view)
    note(f"decide: kb review release|reject {version} --text {view.text_sha256[:16]} --reason …")


@app.command()
def release(
    id_: Id, reason: Reason, text: Text = None, data: Data = DATA, json_: Json = False
) -> None:
    """Let a text through; another text of the document waits anew."""
    _decide(data, id_, "release", reason, text, json_=json_)


@app.command()
def reject(
    id_: Id, reason: Reason, text: Text = None, data: Data = DATA, json_: Json = False
) -> None:
    """Refuse a version for good."""
    _decide(data, id_, "reject", reason, text, json_=json_)


def _decide(
    data: Path,
    id_: str,
    decision: Literal["release", "reject"],
    reason: str,
    text: str | None,
    *,
    json_: bool,
) -> None:
    if not reason.strip():
        raise CliError("--reason is empty", "say why; it goes into the journal")
    version = _version(data, id_)
    body: dict[str, Any] = {"decision": decision, "reason": reason.strip()}
    if text is not None:
        body["text_sha256"] = _whole_hash(data, version, text)
    reply = _call(data, "POST", f"/review/{version}", json=body)
    if json_:
        raw(reply.content)
        return
    done = Reviewed.model_validate_json(reply.content)
    word = {"release": "released", "reject": "rejected"}[done.decision]
    out(f"{word}  {done.version_id}  text {done.text_sha256[:16]}")


def _whole_hash(data: Path, version: str, given: str) -> str:
    """The hash of the text that waits, if `given` is its beginning.

    Raises:
        CliError: too short, or another text waits.
    """
    if len(given) < SHORTEST:
        raise CliError("--text is too short", f"give {SHORTEST} digits or more")
    reply = _call(data, "GET", f"/review/{version}")
    waiting = ReviewView.model_validate_json(reply.content).text_sha256
    if not waiting.startswith(given.lower()):
        raise CliError("another text waits", f"{waiting[:16]}: look again, kb review show")
    return waiting


def _version(data: Path, id_: str) -> str:
    """The version that an id means, as one part of a path.

    Raises:
        CliError: there is none, or several versions of the document wait.
    """
    part = path_part(id_)
    reply = _call(data, "GET", f"/documents/{part}")
    found = DocumentView.model_validate_json(reply.content)
    if id_ in {v.version_id for v in found.versions}:
        return part
    waiting = [v.version_id for v in found.versions if v.status == "review"]
    if len(waiting) > 1:
        raise CliError("several versions of it wait", ", ".join(waiting))
    return waiting[0] if waiting else found.version_id


# -- for a person ------------------------------------------------------------------------------


def _row(version: VersionView) -> None:
    scan = version.scan
    at = scan.at if scan else version.received_at
    worst = (scan.worst if scan else None) or "–"
    score = f"{scan.score:.2f}" if scan else "–"
    name = clean(version.title or version.name, one_line=True)
    out(
        f"{version.version_id}  {at:%Y-%m-%d %H:%M}  {_toned(f'{worst:<6}', worst)}  {score:>4}"
        f"  {version.project}  {name}"
    )
    if scan and scan.rules:
        out(f"{'':34}{clean(', '.join(scan.rules), one_line=True)}")


def _show(view: ReviewView) -> None:
    subject = {"parsed": "what was read from the file", "converted": "what would be indexed"}
    facts = {
        "name": view.name,
        "project": view.project,
        "version": view.version_id,
        "text": f"{view.text_sha256[:16]} ({subject[view.subject]})",
        "score": f"{view.score:.2f}",
        "judged": f"{view.judged_at:%Y-%m-%d %H:%M:%S} by {view.ruleset}",
    }
    if view.rescan:
        low = "; for a new document they say block" if view.lowered else ""
        facts["re-scan"] = f"was in the index until newer rules found this{low}"
    for name, value in facts.items():
        out(f"{name:<14} {clean(value, one_line=True)}")
    for finding in view.findings:
        out()
        _finding(finding, view)
    if view.left_out:
        out(f"\nand {view.left_out} findings more")
    for text in view.texts:
        out()
        _text(text, view)


def _finding(f: ReviewFinding, view: ReviewView) -> None:
    times = f" ×{f.count}" if f.count > 1 else ""
    out(f"{f.number}. {_toned(f.severity, f.severity)}  {clean(f.rule)}{times}  {_place(f, view)}")
    out(f"   {clean(f.why, one_line=True) or 'the rules of today have no such rule'}")
    if f.match:
        before, match, after = (_line(t) for t in (f.before[-60:], f.match, f.after[:60]))
        out(f"   … {before}{_marked(match, f.severity)}{after} …")
    if f.says:
        out(f"   says: {clean(f.says, one_line=True)}")


def _line(text: str) -> str:
    """A part of a text in one line; a space at its edge stays."""
    return clean(re.sub(r"\s+", " ", text))


def _place(f: ReviewFinding, view: ReviewView) -> str:
    if f.text is None:
        return "(place unknown)"
    hidden = view.texts[f.text].hidden
    coded = f", {clean('+'.join(f.decoded))}" if f.decoded else ""
    return f"bytes {f.byte_start}-{f.byte_end}{f' of hidden {hidden}' if hidden else ''}{coded}"


def _text(text: ReviewText, view: ReviewView) -> None:
    """The pieces, findings marked `»…«`; every line stands behind a bar."""
    head = f"hidden from readers: {text.hidden}" if text.hidden else "text"
    out(f"-- {head}, {text.size_bytes} bytes " + "-" * 20)
    severities = {f.number: f.severity for f in view.findings}
    whole = ""
    for piece in text.pieces:
        if piece.left_out:
            whole += f"\n[… {piece.left_out} bytes …]\n"
        elif piece.findings:
            worst = min((severities[n] for n in piece.findings), key=list(_COLOURS).index)
            whole += _marked(clean(piece.text), worst)
        else:
            whole += clean(piece.text)
    for line in whole.strip("\n").split("\n"):
        out(f"| {line}")


def _marked(text: str, severity: str) -> str:
    return "\n".join(f"»{_toned(line, severity, bold=True)}«" for line in text.split("\n"))


def _toned(text: str, severity: str, *, bold: bool = False) -> str:
    """In colour, on a terminal only."""
    if not sys.stdout.isatty():
        return text
    return typer.style(text, fg=_COLOURS.get(severity), bold=bold or None)


def _call(data: Path, method: str, path: str, **options: Any) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path, **options)
