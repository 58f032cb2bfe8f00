"""A version in short, as the indexer summarised it: read from its blob, fenced like any text."""

from collections.abc import Iterator

from fastapi import FastAPI
from pydantic import ValidationError

from contracts.artifacts import Sentence, Summary
from contracts.http import VersionView
from contracts.summaries import SummarySection, SummarySentence, SummaryView
from kernel.blobs import Blobs
from kernel.db import queries
from kernel.errors import Refusal
from kernel.fence import fence, fence_name, visible
from kernel.log import Log
from services.search.documents import NOW, Documents, When
from services.search.history import InTime


class Summaries:
    """Reads."""

    def __init__(self, event_log: Log, blobs: Blobs, documents: Documents) -> None:
        self._log, self._blobs, self._documents = event_log, blobs, documents
        self._sql = queries("services.search", "documents")

    async def summary(self, id_: str, when: When = NOW) -> SummaryView:
        """The summary of the version that `id_` means.

        Raises:
            Refusal: `unknown-document`, `not-valid-then`, `no-body`, `no-summary`.
        """
        _, chosen = await self._documents.line(id_, when)
        return shown(chosen, await self.stored(chosen))

    async def stored(self, chosen: VersionView) -> Summary:
        """The summary of a version that was found. Raises as `summary`."""
        await self._documents.text(chosen)  # who may not read the one may not read the other
        name = await self._sql.summary_of(self._log.pool, version_id=chosen.version_id)
        if name is not None:
            try:
                summary = Summary.model_validate_json(await self._blobs.get(str(name)))
            except (FileNotFoundError, ValidationError):
                raise Refusal("no-summary", "the summary is lost", status=410) from None
            if summary.body_sha256 == chosen.body_sha256:
                return summary
        reason = "it has no summary yet: the next rebuild of the index makes one"
        raise Refusal("no-summary", reason, status=404)


def shown(version: VersionView, summary: Summary) -> SummaryView:
    """For a reader: harmless characters, and all of it once more within a fence."""
    sections = [
        SummarySection(
            heading_path=[visible(heading) for heading in s.heading_path],
            depth=s.depth,
            byte_start=s.byte_start,
            byte_end=s.byte_end,
            digest=[_sentence(sentence) for sentence in s.digest],
        )
        for s in summary.sections
    ]
    told = "\n".join(_lines(summary))
    name = fence_name([told])
    return SummaryView(
        source_id=version.source_id,
        document_id=version.document_id,
        version_id=version.version_id,
        project=version.project,
        title=visible(version.title or ""),
        language=summary.language,
        summariser=summary.summariser,
        levels="1-2-3" if summary.outline else "1-2.5",
        lead=summary.lead and _sentence(summary.lead),
        sections=sections,
        left_out=summary.left_out,
        text=fence(told, name),
        fence=name,
    )


def _sentence(sentence: Sentence) -> SummarySentence:
    return SummarySentence(
        text=visible(sentence.text), byte_start=sentence.byte_start, byte_end=sentence.byte_end
    )


def _lines(summary: Summary) -> Iterator[str]:
    if summary.lead is not None:
        yield summary.lead.text
    for section in summary.sections:
        if section.heading_path:
            yield f"{'#' * section.depth} {section.heading_path[-1]}"
        for sentence in section.digest:
            yield f"- {sentence.text}"


def add_summary_route(app: FastAPI, summaries: Summaries) -> None:
    """The route."""

    @app.get("/documents/{id}/summary", response_model=SummaryView)
    async def get_summary(id: str, when: InTime) -> SummaryView:
        return await summaries.summary(id, when)
