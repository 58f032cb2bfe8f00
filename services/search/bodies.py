"""Bodies of questions: read up to a limit, and refused in a sentence."""

from typing import TypeVar

from fastapi import Request
from pydantic import ValidationError

from contracts.query import QueryRequest
from kernel.errors import Refusal

QUERY_BYTES = 64 * 1024

Asked = TypeVar("Asked", bound=QueryRequest)


async def parsed(kind: type[Asked], request: Request) -> Asked:
    """The body as what it should be.

    Raises:
        Refusal: `too-large`, `invalid-request`.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > QUERY_BYTES:
            raise Refusal("too-large", f"a query has at most {QUERY_BYTES} bytes", status=413)
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"]) or "body"
        raise Refusal("invalid-request", f"{where}: {first['msg']}") from error
