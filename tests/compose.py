"""deploy/compose.yaml as tests read it: its containers, and what compose would put into them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (DEPLOY / ".env.example").read_text("utf-8")
NAMES: list[str] = re.findall(r"^#?([A-Z][A-Z0-9_]*)=", EXAMPLE, re.M)
"""Every variable that .env.example knows, set or not."""


def environment(container: str, settings: Mapping[str, str]) -> dict[str, str]:
    """What compose gives that container, with `settings` in .env.

    Raises:
        KeyError: the file wants a variable that is not there.
    """
    given: dict[str, str | None] = CONTAINERS[container].get("environment", {})
    passed = {k: settings[k] for k, v in given.items() if v is None and k in settings}
    return passed | {k: _filled_in(v, settings) for k, v in given.items() if v is not None}


def _filled_in(text: str, settings: Mapping[str, str]) -> str:
    """Compose's interpolation of `${NAME}`, `${NAME:-default}`, `${NAME:?message}`."""
    return re.sub(r"\$\{(\w+)(?::[-?][^}]*)?\}", lambda m: settings[m[1]], text)
