"""Values of spreadsheet cells: exact first, in the form that a reader of the sheet knows.

A date is ISO 8601, a share percent, money has its sign; separators of thousands, which change with
the reader's country, are left out, and no digit that the sheet rounds away is lost.
"""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache

_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.')
_CURRENCY = re.compile(r"\[\$([^\]-]{1,5})[^\]]*\]|([€£¥$])")
_CLOCK = re.compile(r"[hs]|AM/PM", re.IGNORECASE)
_MOST_DECIMALS, _ROUNDED_DECIMALS = 4, 2
_DAY = re.compile(r"[dy]", re.IGNORECASE)

Show = Callable[[float], str]
"""A number of a cell as text; an `int` is exact, however long."""


def number_of(text: str) -> float:
    """A stored number; a whole one keeps every digit.

    Raises:
        ValueError: it is none.
    """
    digits = text.removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() else float(text)


def number_text(value: float) -> str:
    """With the 15 digits that a spreadsheet has, and without an exponent where it can be."""
    if isinstance(value, int):
        return str(value)
    if abs(value) < 1e15 and value == int(value):
        return str(int(value))
    text = f"{value:.15g}"
    return f"{Decimal(text):f}" if "e" in text and 1e-9 < abs(value) < 1e21 else text


@lru_cache(maxsize=2000)
def shower(code: str, *, from_1904: bool = False) -> Show:
    """How numbers under a format code (`0.0%`, `dd.mm.yyyy`) are shown.

    Dates are ISO 8601, shares percent, money has its sign. Numbers keep all their digits, shares
    up to four behind the point. A format that shows nothing (`;;;`) gives an empty text.
    """
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format

    first = code.split(";", maxsplit=1)[0]
    if code.count(";") >= 2 and not code.replace(";", "").strip():
        return lambda _: ""
    if is_timedelta_format(code):
        return _duration
    if is_date_format(code):
        plain = _QUOTED.sub("", re.sub(r"\[[^\]]*\]", "", first))
        day = _DAY.search(plain) or not _CLOCK.search(plain)
        return lambda value: _moment(value, from_1904=from_1904, day=bool(day))
    if "%" in _QUOTED.sub("", first):
        decimals = _decimals(first)
        return lambda value: f"{_percent(value, decimals)}%"
    return _money(first) or number_text


def _percent(value: float, decimals: int) -> str:
    """At least so many decimals, more where the value has them, rounded where it has no end."""
    exact = number_text(value * 100)
    own = len(exact.partition(".")[2])
    if own > _MOST_DECIMALS or "e" in exact:
        return f"{value * 100:.{max(decimals, _ROUNDED_DECIMALS)}f}"
    return f"{value * 100:.{max(decimals, own)}f}"


def _decimals(code: str) -> int:
    match = re.search(r"\.([0#?]+)", code)
    return min(len(match[1]), 10) if match else 0


def _money(code: str) -> Show | None:
    found = _CURRENCY.search(code)
    digits = re.search(r"[0#?]", code)
    if not found or not digits:
        return None
    sign = found[1] or found[2]
    if found.start() < digits.start():
        return lambda value: f"{'-' if value < 0 else ''}{sign}{number_text(abs(value))}"
    return lambda value: f"{number_text(value)} {sign}"


def _duration(value: float) -> str:
    seconds = round(abs(value) * 86400)
    sign = "-" if value < 0 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _moment(value: float, *, from_1904: bool, day: bool) -> str:
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

    epoch = CALENDAR_MAC_1904 if from_1904 else CALENDAR_WINDOWS_1900
    try:
        moment = from_excel(value, epoch)
    except (ValueError, OverflowError):
        return number_text(value)
    return moment_text(moment, day=day)


def moment_text(moment: object, *, day: bool = True) -> str:
    """ISO 8601; a midnight is only a date, and without `day` only the time of day."""
    if isinstance(moment, timedelta):
        return _duration(moment / timedelta(days=1))
    if isinstance(moment, time):
        return moment.isoformat("seconds")
    if not isinstance(moment, datetime):
        return str(moment)
    if not day:
        return moment.time().isoformat("seconds")
    midnight = moment.time() == time(0)
    return moment.date().isoformat() if midnight else moment.isoformat(timespec="seconds")
