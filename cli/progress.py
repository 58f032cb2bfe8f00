"""Views of an ingest: bars on a terminal, lines in a pipe."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from cli.ingest import Outcome, explain
from cli.output import clean, note, out


class Silent:
    """For `--json`."""

    def begin(self, file: str, size: int) -> None:
        """Nothing."""

    def sent(self, file: str, count: int) -> None:
        """Nothing."""

    def stage(self, file: str, status: str) -> None:
        """Nothing."""

    def done(self, outcome: Outcome) -> None:
        """Nothing."""


class Lines(Silent):
    """One line a file when it is done; errors to stderr."""

    def done(self, outcome: Outcome) -> None:
        """The outcome."""
        text = clean(f"{outcome.file}: {explain(outcome)}", one_line=True)
        out(text) if outcome.ok else note(f"error: {text}")


class Bars:
    """A bar while a file is sent, then its stage, then its chunk count."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(20),
            DownloadColumn(),
            TextColumn("{task.fields[stage]}", markup=False),
            console=Console(highlight=False),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, file: str, size: int) -> None:
        """A new bar; the same file given twice gets one."""
        if file in self._tasks:
            self._progress.remove_task(self._tasks.pop(file))
        label = clean(file, one_line=True)[-40:]
        self._tasks[file] = self._progress.add_task("", total=size, label=label, stage="sending")

    def sent(self, file: str, count: int) -> None:
        """More bytes are on their way."""
        self._progress.advance(self._tasks[file], count)

    def stage(self, file: str, status: str) -> None:
        """The job moved."""
        self._progress.update(self._tasks[file], stage=status)

    def done(self, outcome: Outcome) -> None:
        """The bar gives way to a line."""
        if (task := self._tasks.pop(outcome.file, None)) is not None:
            self._progress.remove_task(task)
        text = clean(f"{outcome.file}: {explain(outcome)}", one_line=True)
        line = Text(text) if outcome.ok else Text(f"error: {text}", style="red")
        self._progress.console.print(line, soft_wrap=True)


class EventBar:
    """A bar on standard error: share, events a second, time left. Called with how many are done."""

    def __init__(self, total: int, done: int) -> None:
        self._done = done
        self._progress = Progress(
            BarColumn(30),
            TaskProgressColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} events, {task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._progress.add_task("", total=total, completed=done, rate="")

    def __enter__(self) -> "EventBar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, events: int) -> None:
        """`events` of this run are done."""
        speed = self._progress.tasks[0].speed
        rate = f"{speed:,.0f}/s" if speed else ""
        self._progress.update(self._task, completed=self._done + events, rate=rate)
