"""Which document a person means: by an id, the key of its source, its file name, or its bytes."""

import hashlib
import re
from pathlib import Path

from cli.client import call
from cli.datadir import DataDir
from cli.output import CliError
from contracts.http import DocumentPage, VersionView

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")
_SHOWN = 10


def document_id(data: DataDir, name: str, project: str | None = None) -> str:
    """The id that `name` stands for: itself, if it is one of a document, a version, or bytes.

    Else it is a source key or a file name, and last a file of this machine.

    Raises:
        CliError: nothing is called so, or several documents are.
    """
    if _ID.fullmatch(name):
        return name
    given = {"source": name, "limit": 500, "project": project}
    params = {key: value for key, value in given.items() if value is not None}
    page = DocumentPage.model_validate_json(call(data, "GET", "/documents", params=params).content)
    documents = {v.document_id: v for v in page.documents}
    if len(documents) == 1:
        return next(iter(documents))
    if documents:
        raise CliError("several documents are called so, name one by its id", _several(documents))
    if Path(name).is_file():
        with Path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    raise CliError("no document, source, name or file is called so", name)


def _several(documents: dict[str, VersionView]) -> str:
    shown = [f"{id_} ({v.project}, {v.source_key})" for id_, v in documents.items()]
    more = f", and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more
