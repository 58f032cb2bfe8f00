"""How far a copy is: a bar on a terminal, nothing elsewhere."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_MB = 1024 * 1024


class Copying:
    """Call it with things done, of how many, and bytes copied."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self._bar: Progress | None = None
        if not quiet and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn(label), progress.BarColumn(30), progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[megabytes]} MB"), console=Console(stderr=True),
                transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("", total=None, megabytes=0)

    def __enter__(self) -> "Copying":
        if self._bar:
            self._bar.start()
        return self

    def __call__(self, done: int, total: int, copied: int) -> None:
        """Show it."""
        if self._bar:
            self._bar.update(self._task, completed=done, total=total, megabytes=copied // _MB)

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


def megabytes(count: int) -> str:
    """`12.3 MB`."""
    return f"{count / _MB:,.1f} MB"
