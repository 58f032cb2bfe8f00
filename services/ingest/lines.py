"""Reads a document's line of versions from the log."""

from kernel.log import Log
from services.ingest.domain import Identity, Line, fold


async def load_line(log: Log, document_id: str) -> Line:
    """The line of `document_id`, folded from its own stream and those of its versions.

    The document stream is read first: what is decided on it is appended at that version.
    """
    own = await log.stream(f"document-{document_id}")
    version_ids = {e.data["version_id"] for e in own if e.type == "DocumentReceived"}
    others = await log.streams([f"version-{v}" for v in sorted(version_ids)])
    events = sorted([*own, *others], key=lambda e: e.position)
    return fold(document_id, (e.event() for e in events), own[-1].version if own else 0)


async def document_id_of(log: Log, identity: Identity, project: str, source_key: str) -> str:
    """Id of the document that (project, source key) names: the one that the log knows, which may
    come from another installation, or that which its first receipt will get here."""
    known = await log.document_of(project, source_key)
    return known or identity.document(project, source_key)


def version_id_of(line: Line, identity: Identity, source_id: str) -> str:
    """As `document_id_of`: id of the version of a document that has these bytes."""
    known = (v for v, receipt in line.received.items() if receipt.source_id == source_id)
    return next(known, None) or identity.version(line.document_id, source_id)
