"""A server that speaks the part of Qdrant's REST API that we use, over the client's local mode.

For tests where no Qdrant server is at hand: it proves our wire calls, not Qdrant itself.
"""

import json
import re
import threading
import warnings
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel
from qdrant_client import QdrantClient, models

_COLLECTION = re.compile(r"/collections/([^/]+)(/.+)?")


class QdrantStub:
    """`with QdrantStub(api_key=…) as stub: … stub.url`.

    `failures`: so many calls are answered by `failure`. `calls`: verb and path of every call.
    """

    def __init__(self, *, api_key: str = "") -> None:
        self.client = QdrantClient(":memory:")
        self.api_key = api_key
        self.failures = 0
        self.failure = HTTPStatus.SERVICE_UNAVAILABLE
        self.lock = threading.Lock()
        self.indexed: dict[str, set[str]] = {}
        self.looked_at: list[int | None] = []
        self.calls: list[tuple[str, str]] = []
        handler = type("_BoundHandler", (_Handler,), {"stub": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<free port>`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "QdrantStub":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.client.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    stub: ClassVar[QdrantStub]
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        stub = self.stub
        with stub.lock:
            stub.calls.append((self.command, path))
            if stub.api_key and self.headers.get("api-key") != stub.api_key:
                return self._answer(HTTPStatus.UNAUTHORIZED, None)
            if stub.failures:
                stub.failures -= 1
                return self._answer(stub.failure, None)
            status, result = _route(stub, self.command, path, json.loads(body or b"{}"))
        return self._answer(status, result)

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def _answer(self, status: HTTPStatus, result: Any) -> None:
        state = "ok" if status is HTTPStatus.OK else {"error": status.phrase}
        reply = json.dumps({"result": result, "status": state, "time": 0.0}).encode()
        self.send_response(status)
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("retry-after", "7")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


def _route(stub: QdrantStub, verb: str, path: str, body: Any) -> tuple[HTTPStatus, Any]:
    if path == "/collections":
        return HTTPStatus.OK, _plain(stub.client.get_collections())
    found = _COLLECTION.fullmatch(path)
    if found is None:
        return HTTPStatus.NOT_FOUND, None
    name, call = found[1], (verb, found[2] or "")
    exists = stub.client.collection_exists(name)
    if call == ("PUT", ""):
        return (HTTPStatus.CONFLICT, None) if exists else (HTTPStatus.OK, _create(stub, name, body))
    if not exists:
        return HTTPStatus.NOT_FOUND, None
    return HTTPStatus.OK, _CALLS[call](stub, name, body)


def _create(stub: QdrantStub, name: str, body: Any) -> bool:
    config = models.CreateCollection.model_validate(body)
    return stub.client.create_collection(name, vectors_config=config.vectors)


def _info(stub: QdrantStub, name: str, _: Any) -> Any:
    return _plain(stub.client.get_collection(name))


def _drop(stub: QdrantStub, name: str, _: Any) -> bool:
    stub.indexed.pop(name, None)
    return stub.client.delete_collection(name)


def _index(stub: QdrantStub, name: str, body: Any) -> Any:
    """Local mode searches without indexes; which ones were asked for can be read in `indexed`."""
    wanted = models.CreateFieldIndex.model_validate(body)
    stub.indexed.setdefault(name, set()).add(wanted.field_name)
    return _done()


def _upsert(stub: QdrantStub, name: str, body: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "use a server for more than 20,000 points"
        stub.client.upsert(name, models.PointsList.model_validate(body).points)
    return _done()


def _query(stub: QdrantStub, name: str, body: Any) -> Any:
    asked = models.QueryRequest.model_validate(body)
    stub.looked_at.append(asked.params.hnsw_ef if asked.params else None)  # local mode is exact
    reply = stub.client.query_points(
        name,
        query=asked.query,
        query_filter=asked.filter,
        limit=asked.limit or 10,
        with_payload=True if asked.with_payload is None else asked.with_payload,
    )
    return _plain(reply)


def _set_payload(stub: QdrantStub, name: str, body: Any) -> Any:
    asked = models.SetPayload.model_validate(body)
    stub.client.set_payload(name, asked.payload, points=asked.filter or asked.points or [])
    return _done()


def _delete(stub: QdrantStub, name: str, body: Any) -> Any:
    kind = models.PointIdsList if "points" in body else models.FilterSelector
    stub.client.delete(name, kind.model_validate(body))
    return _done()


def _count(stub: QdrantStub, name: str, body: Any) -> Any:
    asked = models.CountRequest.model_validate(body)
    return _plain(stub.client.count(name, count_filter=asked.filter))


def _scroll(stub: QdrantStub, name: str, body: Any) -> Any:
    asked = models.ScrollRequest.model_validate(body)
    records, following = stub.client.scroll(
        name,
        scroll_filter=asked.filter,
        limit=asked.limit or 10,
        offset=asked.offset,
        with_payload=asked.with_payload or False,
    )
    return {"points": [_plain(r) for r in records], "next_page_offset": following}


_CALLS = {
    ("GET", ""): _info,
    ("DELETE", ""): _drop,
    ("PUT", "/index"): _index,
    ("PUT", "/points"): _upsert,
    ("POST", "/points/query"): _query,
    ("POST", "/points/payload"): _set_payload,
    ("POST", "/points/delete"): _delete,
    ("POST", "/points/count"): _count,
    ("POST", "/points/scroll"): _scroll,
}


def _plain(model: BaseModel) -> Any:
    return model.model_dump(mode="json")


def _done() -> dict[str, Any]:
    return {"operation_id": 0, "status": "completed"}
