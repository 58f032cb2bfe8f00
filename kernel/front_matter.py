"""What a body says of itself when it stands alone as a file: YAML before the Markdown."""

from collections.abc import Mapping
from typing import Any

from contracts.artifacts import BodyMeta

FIRST = ("title", "language", "source", "date", "author", "publication", "parser", "pages")


def front_matter(meta: BodyMeta, fields: Mapping[str, Any]) -> str:
    """YAML front matter for the view of a body: what `meta` and `fields` say, None left out.

    The fields of `FIRST` come first, in that order, then the others of `meta`, then of `fields`,
    which win. A value is on one line, so none can end the front matter.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """Text that is not printable throughout is quoted with escapes: YAML changes line ends."""

    def text_of(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if value.isprintable() else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text_of)
    known = {**meta.model_dump(), **fields}
    order = [*(name for name in FIRST if name in known), *known]
    kept = {name: known[name] for name in order if known[name] is not None}
    text = yaml.dump(kept, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=2**31)
    return f"---\n{text}---\n"
