"""The catalogue and the templates agree."""

import re
from importlib import resources
from typing import get_args

import pytest
from jinja2 import nodes

from contracts.events import EVENTS, HiddenKind, Severity
from contracts.http import Status
from services.ui.strings import english
from services.ui.view import environment

T = english()
ENV = environment(T)
TEMPLATES = sorted(p.name for p in (resources.files("services.ui") / "templates").iterdir())
PREFIXES = (
    "status.",
    "error.",
    "journal.",
    "journal_detail.",
    "validity.",
    "search.by_",
    "review.subject_",
    "severity.",
    "hidden.",
    "document.no_text_",
    "diff.kind_",
    "diff.count_",
    "diff.gap",
    "history.cause_",
)
"""Keys that are put together at run time."""


def keys_of(template: str) -> set[str]:
    """Every literal key that a template gives to `t`."""
    source = (resources.files("services.ui") / "templates" / template).read_text("utf-8")
    calls = ENV.parse(source).find_all(nodes.Call)
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.node, nodes.Name)
        and call.node.name == "t"
        and isinstance(call.args[0], nodes.Const)
    }


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_string_of_a_template_is_in_the_catalogue(template: str) -> None:
    assert keys_of(template) <= T.keys()


def test_no_string_of_the_catalogue_is_left_unused() -> None:
    used = set().union(*(keys_of(t) for t in TEMPLATES))
    code = "".join(
        p.read_text("utf-8")
        for p in resources.files("services.ui").iterdir()
        if p.name.endswith(".py")
    )
    used |= set(re.findall(r"\"(\w+\.[\w-]+)\"", code))
    unused = {k for k in T.keys() - used if not k.startswith(PREFIXES)}
    assert unused == set()


def test_every_status_and_every_event_has_words() -> None:
    assert all(f"status.{s}" in T for s in get_args(Status))
    assert all(f"journal.{e}" in T and f"journal_detail.{e}" in T for e in EVENTS)


def test_every_severity_and_everything_that_hides_a_text_has_words() -> None:
    assert all(f"severity.{s}" in T for s in get_args(Severity))
    assert all(f"hidden.{k}" in T for k in get_args(HiddenKind))


def test_templates_hold_no_words_of_their_own() -> None:
    for template in TEMPLATES:
        source = (resources.files("services.ui") / "templates" / template).read_text("utf-8")
        source = re.sub(r"{% block width %}.*?{% endblock %}", "", source)
        text = re.sub(
            r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>",
            " ",
            re.sub(r"{[%{].*?[%}]}", "", source, flags=re.DOTALL),
            flags=re.DOTALL,
        )
        assert re.findall(r"[A-Za-z]{3,}", text) == [], template


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        T("nothing.here")
