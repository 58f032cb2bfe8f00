"""`kb rescan`: stored texts judged by the rules in force."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, clean, note, out, path_part, raw
from contracts.events import RescanCounts
from contracts.rescan import RescanReply, RescanReport, RescanView

EVERY = 1.0
"""Seconds between two looks at one that runs."""


def rescan(
    project: Annotated[
        str | None, typer.Option("--project", help="Only this knowledge base.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is over, with a report.")] = False,
    status: Annotated[bool, typer.Option("--status", help="How far it is; begin nothing.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End what runs.")] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="ID", help="What a re-scan found.")
    ] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Judge all stored texts by the rules in force, in the background.

    What they find leaves the index and waits for a person, as `kb doc list` shows (`review`). With
    --wait the exit is 0 if every re-scan came to its end, else 1.
    """
    if sum((wait, status, cancel, report is not None)) > 1:
        raise CliError("one of --wait, --status, --cancel, --report")
    if report is not None:
        reply = _call(data, "GET", f"/rescan/{path_part(report)}")
        raw(reply.content) if json_ else _report(RescanReport.model_validate_json(reply.content))
        return
    reply = _asked(data, project, status=status, cancel=cancel)
    if wait:
        reply = _finished(data, project, reply, quiet=json_)
    answer = RescanReply.model_validate_json(reply.content)
    if json_:
        raw(reply.content)
    else:
        _show(answer, begun=not (status or cancel), reports=wait, data=data)
    if wait and any(r.state != "finished" for r in answer.rescans):
        raise typer.Exit(1)


def _asked(data: Path, project: str | None, *, status: bool, cancel: bool) -> Any:
    if status:
        return _call(data, "GET", "/rescan", params={"project": project} if project else {})
    path = "/rescan/cancel" if cancel else "/rescan"
    return _call(data, "POST", path, json={"project": project} if project else {})


def _finished(data: Path, project: str | None, reply: Any, *, quiet: bool) -> Any:
    """The reply when none of the asked re-scans runs any more."""
    told = ""
    while True:
        rescans = RescanReply.model_validate_json(reply.content).rescans
        running = [r for r in rescans if r.state == "running"]
        line = ", ".join(_progress(r) for r in running)
        if line and line != told and not quiet:
            note(line)
        told = line
        if not running:
            return reply
        if all(r.waiting for r in running):
            raise CliError("nothing works on it", "the scanner has other rules: run kb rescan")
        time.sleep(EVERY)
        reply = _asked(data, project, status=True, cancel=False)


def _show(answer: RescanReply, *, begun: bool, reports: bool, data: Path) -> None:
    if not answer.rescans:
        out("no re-scan yet" if not begun else "nothing is stored")
    for r in answer.rescans:
        ran = begun and r.state == "running" and r.project not in answer.started
        out(_progress(r) + ("  (it ran already)" if ran else ""))
        if r.state != "running":
            out(f"  {_counts(r.counts)}; {r.seconds:g} s")
        if reports and (r.counts.quarantined or r.counts.kept):
            found = _call(data, "GET", f"/rescan/{path_part(r.rescan_id)}")
            _report(RescanReport.model_validate_json(found.content), head=False)


def _progress(r: RescanView) -> str:
    share = f"{r.done}/{r.receipts}"
    waiting = "  waits for a process with its rules" if r.waiting else ""
    return f"{r.project}  {r.rescan_id}  {r.state}  {share}  {clean(r.ruleset)}{waiting}"


def _counts(counts: RescanCounts) -> str:
    named = {
        "clean": counts.clean, "to review": counts.quarantined, "known": counts.known,
        "not in the index": counts.absent, **{f"kept ({k})": n for k, n in counts.kept.items()},
    }  # fmt: skip
    return f"{counts.looked} versions: " + ", ".join(
        f"{n} {what}" for what, n in named.items() if n
    )


def _report(report: RescanReport, *, head: bool = True) -> None:
    if head:
        out(_progress(report.rescan))
        out(f"  {_counts(report.rescan.counts)}; {report.rescan.seconds:g} s")
    for hit in report.hits:
        name, rules = clean(hit.name, one_line=True), ", ".join(hit.rules)
        out(f"  {hit.version_id}  {hit.verdict:<10}  {hit.decision:<8}  {name}  {clean(rules)}")
    for kept in report.kept:
        out(
            f"  {kept.version_id}  kept        {kept.code}  {clean(', '.join(kept.rules))}".rstrip()
        )


def _call(data: Path, method: str, path: str, **options: Any) -> Any:
    from cli.client import call

    return call(DataDir(data.absolute()), method, path, **options)
