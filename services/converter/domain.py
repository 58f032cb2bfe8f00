"""TEMPORARY stand-in by the lead so that the stack starts; the owner replaces this file."""

from contracts.artifacts import BodyMeta, ParsedDocument


def canonical(parsed: ParsedDocument, fallback_title: str) -> tuple[str, BodyMeta]:
    body = parsed.markdown.strip() + "\n"
    title = parsed.meta.title or next(
        (x.lstrip("# ") for x in body.splitlines() if x.startswith("# ")), fallback_title
    )
    return body, parsed.meta.model_copy(update={"title": title})
