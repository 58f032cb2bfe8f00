"""From a citation back to its words: the exact bytes of any version, and what surrounds them."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response

from contracts.artifacts import breadcrumb
from contracts.diff import SectionPlace
from contracts.http import VersionView
from contracts.passages import MOST_NEIGHBOURS, Neighbour, PassageView
from kernel.db import queries
from kernel.errors import Refusal
from kernel.log import Log
from services.search.documents import NOW, Documents, When
from services.search.history import InTime
from services.search.places import LAST, Originals, check_range
from services.search.sections import ROOT, Sections, sections


@dataclass(frozen=True, slots=True)
class Bytes:
    """UTF-8 bytes `[start, end)` of a body."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Near:
    """A passage of the index; `lead` is what was embedded before its words: a table's head."""

    where: Bytes
    lead: str


class Passages:
    """Reads. An id is one that `Documents` takes."""

    def __init__(self, event_log: Log, documents: Documents, originals: Originals) -> None:
        self._pool, self._sql = event_log.pool, queries("services.search", "passages")
        self._documents, self._originals = documents, originals

    async def exact(self, id_: str, where: Bytes, when: When = NOW) -> tuple[VersionView, bytes]:
        """The bytes of a range of the body, whatever they are.

        Raises:
            Refusal: those of `Documents.body`; `invalid-request`: no range of the body.
        """
        version, body = await self._documents.body(id_, when)
        _check(where, body)
        return version, body[where.start : where.end]

    async def passage(
        self, id_: str, where: Bytes | str, when: When = NOW, *, neighbours: int = 0
    ) -> PassageView:
        """The words of a range, or of a passage that is named by its `chunk_id`.

        Raises:
            Refusal: those of `Documents.body`; `invalid-request`: no range of the body, or one that
                cuts a character; `unknown-passage`: the index has no such passage of the version.
        """
        version, body = await self._documents.body(id_, when)
        if isinstance(where, str):
            where = await self._named(version, where)
        _check(where, body, whole=True)
        found = await asyncio.to_thread(sections, body)
        number = section_of(found, where)
        own, above = found.all[number].path, found.all[number].parent
        return PassageView(
            **version.model_dump(
                include={
                    "document_id", "version_id", "source_id", "project", "title", "media_type",
                    "language", "valid_from", "valid_until", "current",
                }
            ),
            source=source_of(version),
            body_sha256=str(version.body_sha256),
            body_bytes=len(body),
            byte_start=where.start,
            byte_end=where.end,
            heading_path=list(own),
            text=body[where.start : where.end].decode(),
            section=place(found, number),
            parent=None if above == ROOT else place(found, above),
            before=await self._beside("before", version, body, where, neighbours),
            after=await self._beside("after", version, body, where, neighbours),
            spans=await self._originals.spans(version, where.start, where.end),
        )  # fmt: skip

    async def near(
        self, version: VersionView, body: bytes, where: Bytes, neighbours: int, chunk_id: str
    ) -> list[Near]:
        """A passage of the index, and so many before it and after it, in no order; what of them is
        still there."""
        which = {"project": version.project, "version_id": version.version_id}
        own = await self._sql.chunk(self._pool, **which, chunk_id=chunk_id)
        before = await self._rows("before", version, where, neighbours)
        after = await self._rows("after", version, where, neighbours)
        return [_near(row, body) for row in (*([own] if own else []), *before, *after)]

    async def _named(self, version: VersionView, chunk_id: str) -> Bytes:
        which = {"project": version.project, "version_id": version.version_id}
        row = await self._sql.chunk(self._pool, **which, chunk_id=chunk_id)
        if row is None:
            raise Refusal("unknown-passage", "the version has no such passage", status=404)
        return Bytes(row["byte_start"], row["byte_end"])

    async def _beside(
        self, side: str, version: VersionView, body: bytes, where: Bytes, limit: int
    ) -> list[Neighbour]:
        return [
            Neighbour(
                chunk_id=row["chunk_id"],
                heading_path=row["heading_path"],
                byte_start=row["byte_start"],
                byte_end=row["byte_end"],
                text=body[row["byte_start"] : row["byte_end"]].decode(errors="replace"),
            )
            for row in await self._rows(side, version, where, limit)
        ]

    async def _rows(
        self, side: str, version: VersionView, where: Bytes, limit: int
    ) -> Sequence[Any]:
        if not limit:
            return []
        which = {"project": version.project, "version_id": version.version_id, "limit": limit}
        rows = getattr(self._sql, side)(
            self._pool, **which, byte_start=where.start, byte_end=where.end
        )
        return [row async for row in rows]


def source_of(version: VersionView) -> str:
    """What a person calls where a text is from: its key, unless that is a hash of the bytes."""
    return version.name if version.source_key == version.source_id else version.source_key


def section_of(found: Sections, where: Bytes) -> int:
    """The section that a range belongs to: where it begins, or the one below where it begins with
    headings only, as a passage of the index does under headings without a text of their own."""
    starts = [section.start for section in found.all]
    number = max(0, bisect_right(starts, where.start) - 1)
    while (
        number + 1 < len(found.all)
        and found.all[number + 1].start < where.end
        and found.all[number + 1].parent == number
        and found.all[number].text_start >= found.all[number].text_end
    ):
        number += 1
    return number


def place(found: Sections, number: int) -> SectionPlace:
    """A section with all that is below it."""
    last = number
    while last + 1 < len(found.all) and found.all[last + 1].parent >= number:
        last += 1
    section = found.all[number]
    return SectionPlace(
        byte_start=section.start, byte_end=found.all[last].end, heading_path=list(section.path)
    )


def _near(row: Any, body: bytes) -> Near:
    where = Bytes(row["byte_start"], row["byte_end"])
    words = body[where.start : where.end].decode(errors="replace")
    crumb = breadcrumb(row["title"], tuple(row["heading_path"]))
    rest = row["text"].removeprefix(crumb).removeprefix("\n")
    return Near(where, rest.removesuffix(words).rstrip("\n") if rest.endswith(words) else "")


def _check(where: Bytes, body: bytes, *, whole: bool = False) -> None:
    check_range(where.start, where.end, body)
    for name, at in (("start", where.start), ("end", where.end)):
        if whole and at < len(body) and body[at] & 0xC0 == 0x80:
            left = at
            while body[left] & 0xC0 == 0x80:
                left -= 1
            reason = (
                f"{name} {at} is inside of a character that begins at {left}; raw=true takes it"
            )
            raise Refusal("invalid-request", reason)


def add_passage_routes(app: FastAPI, passages: Passages) -> None:
    """`GET /documents/{id}/passage`."""

    @app.get("/documents/{id}/passage", response_model=PassageView)
    async def get_passage(
        id: str,  # noqa: A002 - the name in the path
        when: InTime,
        start: Annotated[int | None, Query(ge=0, le=LAST)] = None,
        end: Annotated[int | None, Query(ge=1, le=LAST)] = None,
        chunk: Annotated[str | None, Query(min_length=1, max_length=1024)] = None,
        neighbours: Annotated[int, Query(ge=0, le=MOST_NEIGHBOURS)] = 0,
        raw: bool = False,
    ) -> PassageView | Response:
        if chunk is not None and start is None and end is None and not raw:
            return await passages.passage(id, chunk, when, neighbours=neighbours)
        if chunk is not None or start is None or end is None:
            raise Refusal("invalid-request", "start and end, or chunk (which has no raw bytes)")
        where = Bytes(start, end)
        if not raw:
            return await passages.passage(id, where, when, neighbours=neighbours)
        version, exact = await passages.exact(id, where, when)
        headers = {"KB-Version-Id": version.version_id, "X-Content-Type-Options": "nosniff"}
        return Response(exact, media_type="text/markdown; charset=utf-8", headers=headers)
