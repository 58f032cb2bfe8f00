"""`kb lang`: which language texts are in, without a running stack."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cli.output import as_json, note, out


def rows(file: str) -> bool:
    """One answer a line for the rows `{"text": …}` of a JSON Lines file, or `-` for standard input.

    Streams: as much memory for a million rows as for one. A row that is no such object gets an
    error with its line number on standard error; the others are answered all the same.

    Returns:
        Whether all rows were good.
    """
    good, number = True, 0
    with _lines(file) as lines:
        for line_number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                text = _text(line)
            except ValueError as error:
                note(f"error: {file}: line {line_number}: {error}")
                good = False
            else:
                sys.stdout.write(json.dumps({"i": number, **answer(text)}) + "\n")
            number += 1
    sys.stdout.flush()
    return good


@contextmanager
def _lines(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as stream:
        yield stream


def _text(line: bytes) -> str:
    """The text of a row.

    Raises:
        ValueError: says what is wrong, without quoting the row.
    """
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise ValueError('not an object with a string "text"')
    return str(row["text"])


def answer(text: str) -> dict[str, Any]:
    """`lang`, `script`, `shares`, and `label` for Bosnian."""
    from kernel.language import identify

    found = identify(text)
    label = {"label": found.label} if found.label else {}
    return {"lang": found.code, "script": found.script, "shares": found.shares, **label}


def files(paths: list[Path], *, json_: bool) -> None:
    """The language of each text file (UTF-8; what is not is replaced)."""
    for path in paths:
        found = answer(path.read_text("utf-8", errors="replace"))
        if json_:
            as_json({"file": str(path), **found})
        else:
            shares = ", ".join(f"{code} {share:.0%}" for code, share in found["shares"].items())
            label = f" ({found['label']})" if "label" in found else ""
            out(f"{path}: {found['lang']}{label} {found['script']} [{shares}]")
