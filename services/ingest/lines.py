"""Reads a document's line of versions from the log."""

from kernel.log import Log
from services.ingest.domain import Line, fold


async def load_line(log: Log, document_id: str) -> Line:
    """The line of `document_id`, folded from its own stream and those of its versions.

    The document stream is read first: what is decided on it is appended at that version.
    """
    own = await log.stream(f"document-{document_id}")
    version_ids = {e.data["version_id"] for e in own if e.type == "DocumentReceived"}
    others = await log.streams([f"version-{v}" for v in sorted(version_ids)])
    events = sorted([*own, *others], key=lambda e: e.position)
    return fold(document_id, (e.event() for e in events), own[-1].version if own else 0)
