"""A figure, its bar, and whether it holds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured ratio of one run."""

    what: str
    figures: str
    ratio: float
    bar: str
    holds: bool

    def line(self) -> str:
        """As a Markdown table row."""
        return (
            f"| {self.what} | {self.figures} | {self.ratio:.2f} | {self.bar} | "
            f"{'yes' if self.holds else '**no**'} |"
        )


HEAD = "| what | figures | ratio | bar | holds |\n|---|---|---|---|---|"
