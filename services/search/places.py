"""From a range of a body back to the original: pages and boxes, cells, paths, and the bytes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Query, Response
from fastapi.responses import StreamingResponse

from contracts.artifacts import Span, SpanMap
from contracts.events import Converted
from contracts.http import Places, VersionView
from kernel.blobs import Blobs
from kernel.errors import Refusal
from kernel.log import Log
from services.search.documents import Documents

LAST = 2**63 - 1
"""The largest position or offset there can be."""
_CHUNK = 1024 * 1024


class Originals:
    """Reads what lies behind a body. An id is one that `Documents` takes."""

    def __init__(self, event_log: Log, blobs: Blobs, documents: Documents) -> None:
        self._log, self._blobs, self._documents = event_log, blobs, documents

    async def places(self, id_: str, byte_start: int, byte_end: int | None) -> Places:
        """The spans of a version's body that touch `[byte_start, byte_end)`; None: to its end.

        Raises:
            Refusal: `unknown-document`, `no-body`, `invalid-request` (no range of the body).
        """
        version, body = await self._documents.body(id_)
        end = len(body) if byte_end is None else byte_end
        check_range(byte_start, end, body)
        return Places(
            version_id=version.version_id,
            source_id=version.source_id,
            media_type=version.media_type,
            body_sha256=str(version.body_sha256),
            byte_start=byte_start,
            byte_end=end,
            spans=await self.spans(version, byte_start, end),
        )

    async def spans(self, version: VersionView, byte_start: int, byte_end: int) -> list[Span]:
        """The places of a range of the body that the version has now; none where none is known."""
        map_ = await self._spans(version)
        return list(map_.within(byte_start, byte_end)) if map_ else []

    async def _spans(self, version: VersionView) -> SpanMap | None:
        """The span map of the body that the version has now; None for one from before there were
        any, and for one that was erased."""
        for envelope in reversed(await self._log.stream(f"version-{version.version_id}")):
            event = envelope.fact()
            if isinstance(event, Converted) and event.body_sha256 == version.body_sha256:
                if event.spans_sha256 is None:
                    return None
                try:
                    return SpanMap.model_validate_json(await self._blobs.get(event.spans_sha256))
                except FileNotFoundError:
                    return None
        return None

    async def source(self, id_: str) -> tuple[VersionView, AsyncIterator[bytes]]:
        """The bytes that were uploaded, in pieces of up to a MiB; only of a text that may be read.

        Raises:
            Refusal: `unknown-document`, `no-body`, `no-source` (erased).
        """
        version, _ = await self._documents.body(id_)
        if not await self._blobs.exists(version.source_id):
            raise Refusal("no-source", "the bytes were erased", status=410)

        async def pieces() -> AsyncIterator[bytes]:
            async with self._blobs.local_path(version.source_id) as path:
                with path.open("rb") as file:
                    while piece := await asyncio.to_thread(file.read, _CHUNK):
                        yield piece

        return version, pieces()


def check_range(start: int, end: int, body: bytes) -> None:
    """Raises Refusal `invalid-request`: not a range of the body, or an empty one."""
    if not 0 <= start < end <= len(body):
        raise Refusal("invalid-request", f"no range of a body of {len(body)} bytes")


def add_original_routes(app: FastAPI, originals: Originals) -> None:
    """`GET /documents/{id}/places` and `/source`."""

    @app.get("/documents/{id}/places", response_model=Places)
    async def get_places(
        id: str,  # noqa: A002 - the name in the path
        start: Annotated[int, Query(ge=0, le=LAST)] = 0,
        end: Annotated[int | None, Query(ge=1, le=LAST)] = None,
    ) -> Places:
        return await originals.places(id, start, end)

    @app.get("/documents/{id}/source")
    async def get_source(id: str) -> Response:  # noqa: A002
        version, pieces = await originals.source(id)
        return StreamingResponse(
            pieces, media_type="application/octet-stream", headers=_source_headers(version)
        )


def _source_headers(version: VersionView) -> dict[str, str]:
    """A stranger's file is saved, and never run in our origin."""
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(version.name, safe='')}",
        "Content-Length": str(version.size_bytes),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": f'"{version.source_id}"',
        "KB-Version-Id": version.version_id,
        "X-Content-Type-Options": "nosniff",
    }
