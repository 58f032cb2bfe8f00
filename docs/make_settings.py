"""Writes the table of settings in docs/operations.md from the settings classes.

python -m docs.make_settings
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cli.datadir import BUS_USERS, ROLES
from cli.plan import APART, Stores, groups, plan
from kernel.settings import Environment

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operations.md"
BEGIN, END = "<!-- settings: python -m docs.make_settings -->", "<!-- end of settings -->"


def classes() -> Iterator[type[Environment]]:
    """Every settings class of the product, the kernel's first."""
    for folder in ("kernel", "services"):
        for file in sorted((ROOT / folder).rglob("*.py"), key=lambda f: (len(f.parts), f)):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and _bases(node) & {"Environment"}:
                    module = file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
                    yield getattr(import_module(module), node.name)


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(b).rpartition(".")[2] for b in node.bases}


def settings() -> dict[str, FieldInfo]:
    """Variable name → field; of two classes that read one variable, the one that explains it."""
    found: dict[str, FieldInfo] = {}
    for cls in classes():
        prefix = cls.model_config.get("env_prefix", "")
        for name, field in cls.model_fields.items():
            variable = _variable(prefix, name, field)
            if variable not in found or not found[variable].description:
                found[variable] = field
    return found


def _variable(prefix: str, name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return next(str(c) for c in alias.choices if str(c).startswith("KB_"))
    return str(alias) if alias else f"{prefix}{name}".upper()


def readers(variable: str) -> list[str]:
    """The services that get that variable from `kb up`: always, or else when `.env` has it."""
    apart, wish = {"KB_QDRANT_URL": "http://x"}, {variable: "x"}
    return _given(variable, apart) or _given(variable, apart | wish) or _given(variable, {})


def _given(variable: str, config: dict[str, str]) -> list[str]:
    given = {f"KB_DB_PASSWORD_{r.upper()}": "x" for r in ROLES} | config
    given |= {f"KB_BUS_PASSWORD_{u.upper()}": "x" for u in BUS_USERS}
    ports = {"+".join(group): 1 for group in groups(given)}
    specs = plan(given, Stores("d", "postgresql://x", "nats://x", "b"), ports, "run")
    return [spec.name for spec in specs if variable in spec.env]


def table() -> str:
    """All settings as a Markdown table."""
    rows = ["| variable | default | meaning | given to |", "|---|---|---|---|"]
    for variable, field in settings().items():
        who = readers(variable)
        given = "all" if len(who) == len(APART) else ", ".join(who) or "(by hand)"
        meaning = (field.description or "").replace("|", "\\|")
        rows.append(f"| `{variable}` | {_default(field.default)} | {meaning} | {given} |")
    return "\n".join(rows)


def _default(value: Any) -> str:
    if value is PydanticUndefined or value is None or value in ("", SecretStr("")):
        return ""
    if isinstance(value, frozenset | set):
        value = ", ".join(sorted(map(str, value)))
    return f"`{str(value).rstrip('/') if '://' in str(value) else value}`"


def page(text: str) -> str:
    """`text` with the table between its marks.

    Raises:
        ValueError: the marks are missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
