"""`kb scan --rules` and `--explain`: the scanner's tables, for a person and for a program."""

import difflib
import re
from collections.abc import Iterator
from itertools import groupby

from cli.output import CliError, as_json, out
from services.scanner.detectors import DETECTORS, MIXED
from services.scanner.ruleset import Rule, default_ruleset, word_lists

_FEW = 12
"""Words of a list that are shown to a person."""


def listed(kind: str | None, language: str | None, *, json_: bool) -> None:
    """One line a rule, those of a kind or language only.

    Raises:
        CliError: there is no such kind or language.
    """
    rules = default_ruleset().rules.values()
    _check("kind", kind, {rule.kind for rule in rules})
    _check("language", language, {rule.language for rule in rules})
    found = [r for r in rules if kind in (None, r.kind) and language in (None, r.language)]
    if json_:
        as_json([rule.model_dump(mode="json") for rule in found])
        return
    width = max((len(rule.id) for rule in found), default=0)
    for rule in found:
        columns = f"{rule.id:<{width}}  {rule.severity:<6}  {rule.kind:<12} {rule.language:<3}"
        out(f"{columns}  {rule.why}")
    out(f"{len(found)} rules, {default_ruleset().version}")


def _check(name: str, given: str | None, known: set[str]) -> None:
    if given is not None and given not in known:
        raise CliError(f"no rule has the {name} {given}", f"there are {', '.join(sorted(known))}")


def explain(id_: str, *, json_: bool) -> None:
    """All that the table says about one rule.

    Raises:
        CliError: there is no such rule; it names those with a similar id.
    """
    rule = default_ruleset().rules.get(id_)
    if rule is None:
        raise CliError("no such rule", f"{id_}{_near(id_)}")
    if json_:
        as_json(rule.model_dump(mode="json") | {"looks_for": list(_looks_for(rule, few=False))})
        return
    out(f"{rule.id}: {rule.severity}, kind {rule.kind}, language {rule.language}")
    out(f"  why       {rule.why}")
    for text in _looks_for(rule, few=True):
        out(f"  looks for {text}")
    out(f"  fires     {_shown(rule.positive)}")
    out(f"  does not  {_shown(rule.negative)}")


def _near(id_: str) -> str:
    """Ids that were perhaps meant."""
    ids = list(default_ruleset().rules)
    near = difflib.get_close_matches(id_.casefold(), ids, 5, 0.6)
    near += [known for known in ids if id_ and id_.casefold() in known and known not in near][:5]
    return f"; perhaps {', '.join(near)}" if near else "; kb scan --rules lists them"


def _shown(text: str) -> str:
    """An example, its invisible characters named, so that one sees what is meant."""
    from cli.scan_judge import visible

    return visible(text.encode())


def _looks_for(rule: Rule, *, few: bool) -> Iterator[str]:
    for pattern in rule.patterns:
        # A list that may come several times is told once.
        yield " ".join(
            told for told, _ in groupby(_sign(s, rule, few=few) for s in pattern.split())
        )
    if rule.regex:
        yield f"the regular expression {rule.regex}"
    if rule.detector:
        doc = ((DETECTORS | MIXED)[rule.detector].__doc__ or rule.detector).strip().split("\n")[0]
        yield doc
    if not (rule.patterns or rule.regex or rule.detector):
        yield "what no table can say: the engine raises it"


_PLAIN = {":": "(then a colon)", ",": "(then the end of a clause)"}


def _sign(sign: str, rule: Rule, *, few: bool) -> str:
    """A sign of a pattern in words: `{forget}?` becomes `[forget | forget about]`."""
    if sign in _PLAIN:
        return _PLAIN[sign]
    if match := re.fullmatch(r"~(\d+)", sign):
        return f"…{match[1]}"
    if sign.startswith("^"):
        rest = _sign(sign[1:], rule, few=few) if len(sign) > 1 else ""
        return f"(at the beginning of a sentence) {rest}".rstrip()
    name = sign.removesuffix("?")
    words = word_lists()[rule.id][name.strip("{}")] if name.startswith("{") else (name,)
    shown = words[:_FEW] if few else words
    text = " | ".join(shown) + (
        f" | {len(words) - len(shown)} more" if len(shown) < len(words) else ""
    )
    if name != sign:
        return f"[{text}]"
    return f"({text})" if len(words) > 1 else text
