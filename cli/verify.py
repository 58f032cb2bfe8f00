"""`kb verify`: is the log whole, and do rows, indexes and bytes hold what it says?"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.datadir import DataDir
from cli.output import CliError, as_json, clean, out
from contracts.audit import (
    Anchor,
    AuditPage,
    AuditSize,
    ChainPage,
    Check,
    Fault,
    Finding,
)

EVENTS = 20_000
"""Events of a page: a second or so."""
DOCUMENTS = 100
SHOWN = 20
"""Lines about what was found; --json has more."""
CHECKS: tuple[Check, ...] = ("projection", "index", "bytes")
THINGS: dict[Check, str] = {"projection": "rows", "index": "passages", "bytes": "blobs"}
FINE, DRIFT, REPAIRED = 0, 1, 2
_ANCHOR = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})")

Advance = Callable[[int], None]


@dataclass
class Summary:
    """What all pages of one check say."""

    check: Check
    documents: int = 0
    checked: int = 0
    moving: int = 0
    found: int = 0
    repaired: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, page: AuditPage) -> None:
        """One more page."""
        self.documents += page.documents
        self.checked += page.checked
        self.moving += page.moving
        self.found += page.found
        self.repaired += page.repaired
        self.findings += page.findings[: max(0, 1000 - len(self.findings))]


@dataclass
class ChainSummary:
    """What all pages about the log say."""

    events: int = 0
    redacted: int = 0
    found: int = 0
    position: int = 0
    fingerprint: str | None = None
    faults: list[Fault] = field(default_factory=list)

    def add(self, page: ChainPage) -> None:
        """One more page."""
        self.events += page.events
        self.redacted += page.redacted
        self.found += page.found
        self.position, self.fingerprint = page.position, page.fingerprint
        self.faults += page.faults[: max(0, 1000 - len(self.faults))]


def verify(
    project: Annotated[
        str | None, typer.Option("--project", help="Only its documents; the log is checked whole.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put right what can be made again from the log.")
    ] = False,
    anchor: Annotated[
        list[str] | None,
        typer.Option("--anchor", metavar="POSITION:HEX", help="A fingerprint that you wrote down."),
    ] = None,
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the log's hash chain, then rows, both indexes and bytes against it. All goes on.

    From a log that is not whole nothing is repaired. The exit is 0 if nothing is wrong, 1 if
    something is, 2 if all of it was repaired.
    """
    anchors = [_anchor(a) for a in anchor or ()]
    with _http(data) as http:
        size = AuditSize.model_validate_json(_get(http, "/audit", project))
        if project and not size.documents:
            raise CliError("nothing was ever put into this project", project)
        with _bar(size.head + 3 * size.documents, quiet=json_) as advance:
            chain = _chain(http, anchors, advance)
            mend = repair and not chain.found  # what it says now is no truth to repair from
            checks = [_check(http, c, project, mend, advance) for c in CHECKS]
    code = _exit(chain, checks)
    if json_:
        as_json(_document(chain, checks, code))
    else:
        _show(chain, checks, repair=repair)
    raise typer.Exit(code)


def _anchor(text: str) -> Anchor:
    matched = _ANCHOR.fullmatch(text.strip().lower())
    if matched is None:
        raise CliError("no such anchor", "POSITION:HEX, as kb verify prints it")
    return Anchor(position=int(matched[1]), fingerprint=matched[2])


def _chain(http: Any, anchors: Sequence[Anchor], advance: Advance) -> ChainSummary:
    """The whole log, page by page; each goes on from the one before."""
    told, summary = [a.model_dump() for a in anchors], ChainSummary()
    while True:
        asked = {
            "after": summary.position,
            "fingerprint": summary.fingerprint,
            "anchors": told,
            "limit": EVENTS,
        }
        page = ChainPage.model_validate_json(_post(http, "/audit/chain", asked))
        summary.add(page)
        advance(page.events)
        if page.done:
            return summary


def _check(http: Any, check: Check, project: str | None, repair: bool, advance: Advance) -> Summary:
    after, summary = 0, Summary(check)
    while True:
        asked = {"after": after, "project": project, "repair": repair, "limit": DOCUMENTS}
        page = AuditPage.model_validate_json(_post(http, f"/audit/{check}", asked))
        summary.add(page)
        advance(page.documents)
        if page.done:
            return summary
        after = page.position


def _exit(chain: ChainSummary, checks: Sequence[Summary]) -> int:
    found, repaired = sum(c.found for c in checks), sum(c.repaired for c in checks)
    if chain.found or found > repaired:
        return DRIFT
    return REPAIRED if found else FINE


def _document(chain: ChainSummary, checks: Sequence[Summary], code: int) -> dict[str, Any]:
    return {
        "result": ("fine", "drift", "repaired")[code],
        "chain": vars(chain) | {"faults": [f.model_dump(mode="json") for f in chain.faults]},
        "checks": [
            vars(c) | {"findings": [f.model_dump(mode="json") for f in c.findings]} for c in checks
        ],
    }


def _show(chain: ChainSummary, checks: Sequence[Summary], *, repair: bool) -> None:
    rows = [("log", f"{chain.events:,} events", "", chain.found, 0)]
    rows += [
        (
            c.check,
            f"{c.documents:,} documents",
            f"{c.checked:,} {THINGS[c.check]}",
            c.found,
            c.repaired,
        )
        for c in checks
    ]
    _table(rows)
    for line in (*_faults(chain), *(x for c in checks for x in _found(c))):
        out(line)
    _advise(chain, checks, repair=repair)


def _table(rows: Sequence[tuple[str, str, str, int, int]]) -> None:
    head = ("check", "looked at", "", "found", "repaired", "left")
    cells = [head] + [
        (name, looked, things, f"{found:,}", f"{repaired:,}", f"{found - repaired:,}")
        for name, looked, things, found, repaired in rows
    ]
    wide = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        left = [c.ljust(w) for c, w in zip(row[:1], wide[:1], strict=True)]
        right = [c.rjust(w) for c, w in zip(row[1:], wide[1:], strict=True)]
        out("  ".join([*left, *right]).rstrip())


def _faults(chain: ChainSummary) -> Iterator[str]:
    for f in chain.faults[:SHOWN]:
        yield _line(f"log: {f.code} at position {f.position}", f.stream_id)
    if chain.found > SHOWN:
        yield f"log: and {chain.found - SHOWN:,} more"


def _found(summary: Summary) -> Iterator[str]:
    for f in summary.findings[:SHOWN]:
        times = f" ×{f.count}" if f.count > 1 else ""
        about = f"version {f.version_id}" if f.version_id and f.version_id not in f.id else None
        again = "is being made again" if f.check == "bytes" else "repaired"
        end = again if f.repaired else f"left: {f.left}" if f.left else "left"
        yield _line(f"{f.check}: {f.what}{times}", f.id, about, f.project, end)
    if len(summary.findings) > SHOWN:
        yield f"{summary.check}: and more; --json lists them"


def _line(*parts: str | None) -> str:
    return "  ".join(clean(p, one_line=True) for p in parts if p)


def _advise(chain: ChainSummary, checks: Sequence[Summary], *, repair: bool) -> None:
    """What to do with it."""
    if moving := max(c.moving for c in checks):
        what = "document is" if moving == 1 else "documents are"
        out(f"{moving:,} {what} being worked on and not judged")
    if chain.redacted:
        out(f"{chain.redacted:,} events lost their words to an erasure")
    if chain.found:
        out("the log is not as it was recorded: nothing is repaired from it. Restore a backup, and")
        out("find out who can write to the database")
    elif chain.fingerprint:
        out(f"the log up to here, to write down elsewhere: {chain.position}:{chain.fingerprint}")
    if not repair and not chain.found and any(c.found for c in checks):
        out("put right what can be made again: kb verify --repair")


@contextmanager
def _bar(total: int, *, quiet: bool) -> Iterator[Advance]:
    """A bar on standard error, gone when it is over."""
    if quiet:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(
        console=Console(stderr=True, highlight=False), transient=True, expand=False
    ) as progress:
        task = progress.add_task("checking", total=max(total, 1))
        yield lambda count: progress.advance(task, count)


@contextmanager
def _http(data: Path) -> Iterator[Any]:
    from cli.client import client

    with client(DataDir(data.absolute())) as http:
        yield http


def _get(http: Any, path: str, project: str | None) -> bytes:
    return _asked(http, "GET", path, params={"project": project} if project else {})


def _post(http: Any, path: str, body: dict[str, Any]) -> bytes:
    return _asked(http, "POST", path, json=body)


def _asked(http: Any, method: str, path: str, **options: Any) -> bytes:
    import httpx

    from cli.client import checked, unreachable

    try:
        reply = http.request(method, path, **options)
    except httpx.HTTPError as error:
        raise unreachable(error) from error
    content: bytes = checked(reply).content
    return content
