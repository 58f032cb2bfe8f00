"""The scanner's judgement: the rules, and the learned layer where it can be had."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from contracts.artifacts import HiddenText
from contracts.events import ScanPolicy
from kernel.embedder.base import EmbedderError
from kernel.embedder.bundled import bundled_weights
from services.scanner.domain import ScanResult, scan
from services.scanner.learned.layer import Layer, open_layer
from services.scanner.learned.model import DamagedModelError, manifest, shipped
from services.scanner.ruleset import Ruleset, default_ruleset
from services.scanner.settings import ScannerSettings

log = structlog.get_logger()

T = TypeVar("T")


class Judge:
    """Rules and learned layer. May be called from several threads.

    The learned layer is loaded by the first judgement. Where it cannot be had, the rules judge
    alone, `version` says so, and the log has the reason once.
    """

    def __init__(self, settings: ScannerSettings) -> None:
        self._settings = settings
        self._ruleset = default_ruleset()
        self._lock = threading.Lock()
        self._layer: Layer | None = None
        self._closed = ""
        if settings.learned == "off":
            self._closed = "switched off"
        else:
            self._try(_look)

    @property
    def version(self) -> str:
        """Names the tables, and the weights where they take part: `rules-1a2b3c4d+m-5e6f7a8b`."""
        if self._closed:
            return self._ruleset.version
        return f"{self._ruleset.version}+m-{manifest()['sha256'][:8]}"

    def under(self, policy: ScanPolicy) -> "Judge | RulesAlone":
        """What judges a project that asks for this."""
        return RulesAlone(self._ruleset) if policy == "rules" else self

    @property
    def without_model(self) -> str:
        """Why the rules judge alone; empty if they do not."""
        return self._closed

    @property
    def forks(self) -> bool:
        """Whether a process that holds it may be doubled: one with a model's threads may not."""
        return bool(self._closed)

    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult:
        """Findings and verdict; the learned layer can raise clean to quarantine, nothing else."""
        layer = self._loaded()
        learned = layer.passages(text, hidden) if layer else ()
        return scan(text, hidden, self._ruleset, learned)

    def load(self) -> str:
        """Load the learned layer now; returns why it is not there, or nothing."""
        self._loaded()
        return self._closed

    def _loaded(self) -> Layer | None:
        with self._lock:
            if self._layer is None and not self._closed:
                self._layer = self._try(self._open)
            return self._layer

    def _open(self) -> Layer:
        return open_layer(
            most=self._settings.learned_windows,
            threads=self._settings.learned_threads,
            model=shipped(),
            layers=manifest()["layers"],
            made_for=manifest()["embedder"],
        )

    def _try(self, step: Callable[[], T]) -> T | None:
        """The step's result; if it cannot be had, the rules judge alone from now on."""
        try:
            return step()
        except (EmbedderError, DamagedModelError) as error:
            self._closed = str(error)
            log.warning("scanner.rules_alone", reason=self._closed)
            return None


@dataclass(frozen=True)
class RulesAlone:
    """The tables without the learned layer, for a project that wants it so."""

    ruleset: Ruleset

    @property
    def version(self) -> str:
        """Names the tables."""
        return self.ruleset.version

    def under(self, policy: ScanPolicy) -> "RulesAlone":
        """Itself."""
        return self

    def load(self) -> str:
        """Nothing is loaded, and nothing is missing."""
        return ""

    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult:
        """Findings and verdict."""
        return scan(text, hidden, self.ruleset)


def _look() -> None:
    """Are both halves of the model there? Cheap, so that `version` is right from the start."""
    shipped()
    bundled_weights()


def open_judge(settings: ScannerSettings | None = None) -> Judge:
    """The judge of an ingest. Cheap: the learned layer is loaded by its first judgement."""
    return Judge(settings or ScannerSettings())
