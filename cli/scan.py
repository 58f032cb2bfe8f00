"""`kb scan`: the scanner's verdict on files and rows, and its rules, without a running stack."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.convert import files_in
from cli.output import CliError, note, out

if TYPE_CHECKING:
    from cli.scan_files import Scanned

_Json = Annotated[bool, typer.Option("--json", help="One line of JSON a file.")]


def scan(
    files: Annotated[
        list[str] | None, typer.Argument(help="Files, or folders with files; - is a text on stdin.")
    ] = None,
    jsonl: Annotated[
        str | None, typer.Option("--jsonl", help="Rows {id, text}; - reads standard input.")
    ] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="RULE", help="Tell all about one rule.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules.")] = False,
    kind: Annotated[str | None, typer.Option("--kind", help="With --rules: of this kind.")] = None,
    language: Annotated[
        str | None, typer.Option("--language", help="With --rules: of this language.")
    ] = None,
    rules_only: Annotated[
        bool, typer.Option("--rules-only", help="Without the learned layer.")
    ] = False,
    json_: _Json = False,
) -> None:
    """Say what the scanner says of files, with its reasons; no stack has to run.

    A file is converted as an ingest would, in any language, with what is attached to it. Byte
    offsets are those of the canonical Markdown (`kb convert` shows it), or of a hidden text.

    Exit 0: all clean. 1: something would be quarantined or blocked. 2: a file could not be scanned
    (the others were), or wrong usage.

    --jsonl writes {id, verdict, score, findings} for each row, in order, and {id, line, error} for
    one that is no row. Exit 0: every row was judged, whatever the verdicts. 2: some were no rows.
    """
    try:
        _check(files, jsonl, explain, rules=rules, filters=(kind, language))
        code = 0
        if explain is not None:
            _explain(explain, json_=json_)
        elif rules:
            _list(kind, language, json_=json_)
        elif jsonl is not None:
            code = _rows(jsonl, rules_only=rules_only)
        else:
            code = _files(files or [], rules_only=rules_only, json_=json_)
    except CliError as error:
        out(error.document()) if json_ else note(error.line())
        raise typer.Exit(2) from None
    raise typer.Exit(code)


def _check(
    files: list[str] | None,
    jsonl: str | None,
    explain: str | None,
    *,
    rules: bool,
    filters: tuple[str | None, str | None],
) -> None:
    """One thing is asked for.

    Raises:
        CliError: none, or several.
    """
    asked = [bool(files), jsonl is not None, explain is not None, rules]
    if sum(asked) != 1:
        raise CliError("give files, or one of --jsonl FILE, --explain RULE and --rules")
    if any(filters) and not rules:
        raise CliError("--kind and --language go with --rules")


def _explain(id_: str, *, json_: bool) -> None:
    from cli import scan_rules

    scan_rules.explain(id_, json_=json_)


def _list(kind: str | None, language: str | None, *, json_: bool) -> None:
    from cli import scan_rules

    scan_rules.listed(kind, language, json_=json_)


def _rows(file: str, *, rules_only: bool) -> int:
    from cli import scan_rows
    from cli.scan_judge import open_judge

    try:
        if file != scan_rows.STDIN:
            Path(file).stat()  # before seconds are spent on loading a model
        judge = open_judge(rules_only=rules_only)
        return 0 if scan_rows.rows(file, judge) else 2
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CliError("cannot read the rows", f"{file}: {error.strerror}") from None


def _files(given: list[str], *, rules_only: bool, json_: bool) -> int:
    from cli import scan_files
    from cli.scan_judge import open_judge

    paths = list(_paths(given))
    if not paths:
        raise CliError("nothing to scan", f"no file in {', '.join(given)}")
    done = scan_files.files(paths, open_judge(rules_only=rules_only), json_=json_)
    rows = [row for scanned in done for row in scanned.all()]
    if len(rows) > 1 and not json_:
        _sum_up(rows)
    if not all(row.ok for row in rows):
        return 2
    return 0 if all(row.verdict == "clean" for row in rows) else 1


def _paths(given: Iterable[str]) -> Iterator[Path]:
    """What is not there is an error of its own, told in its turn: the others are scanned."""
    for name in given:
        path = Path(name)
        if path.is_dir():
            yield from (inner for inner, _ in files_in([path]))
        else:
            yield path


def _sum_up(rows: list["Scanned"]) -> None:
    """How many of each verdict: in a long run they scrolled away."""
    counts = Counter(row.verdict or "not scanned" for row in rows)
    note(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
