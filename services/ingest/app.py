"""Composition root of ingest: `POST /documents`."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.events import Lane, Project
from contracts.http import Accepted, Plain, TextUpload, ValidFrom
from kernel.audit import Auditor, AuditSettings, add_audit_route
from kernel.cache import ParseCache
from kernel.errors import Refusal
from kernel.service import Env, Service
from kernel.web import actor, create_api, role
from services.ingest import handlers
from services.ingest.accept import Offer, accept, superseded
from services.ingest.attachments import Attachments
from services.ingest.audit import BytesExaminer
from services.ingest.audit_chain import ChainWatch, add_chain_routes
from services.ingest.control import add_control_routes
from services.ingest.domain import Identity, checked_name, readable_type, stated_valid_from
from services.ingest.dropped import Dropped
from services.ingest.dropzone import open_dropzone
from services.ingest.elsewhere import Elsewhere
from services.ingest.erase import Eraser
from services.ingest.erasures import add_erasure_routes
from services.ingest.jobs import Jobs
from services.ingest.life import check_bytes
from services.ingest.projects import Projects, add_project_routes
from services.ingest.settings import DropzoneSettings
from services.ingest.upload import Multipart

TEXT_BYTES = 16 * 1024 * 1024
"""Largest JSON body; longer texts are files."""


class Form(BaseModel):
    """The fields beside the file, as `TextUpload` has them."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    project: Project = "default"
    source: Plain | None = Field(None, max_length=2048)
    supersedes: Plain | None = Field(None, max_length=128)
    valid_from: ValidFrom | None = None
    trusted: bool = False
    lane: Lane = "live"


@dataclass(frozen=True)
class Who:
    """The caller, as the front door says."""

    actor: str
    role: str

    @classmethod
    def of(cls, request: Request) -> "Who":
        """Of a request."""
        return cls(actor(request), role(request))


class Uploads:
    """Takes bytes in and records what they are."""

    def __init__(self, env: Env, identity: Identity) -> None:
        self._env, self._identity = env, identity
        self._limit = env.settings.max_upload_bytes

    async def take(self, request: Request) -> Accepted:
        """One upload, by multipart form or as JSON text.

        Raises:
            Refusal: each with its own problem type; nothing is recorded then.
        """
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._limit + 65536:
            raise Refusal("too-large", f"more than {self._limit} bytes", status=413)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            return await self._text(request)
        form = Multipart(request.headers, request.stream())
        return await self._store(form.file(), form, Who.of(request))

    async def _text(self, request: Request) -> Accepted:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > TEXT_BYTES:
                raise Refusal("too-large", f"JSON of more than {TEXT_BYTES} bytes", status=413)
        upload = _validated(TextUpload.model_validate_json, body)

        async def once() -> AsyncIterator[bytes]:
            yield upload.text.encode()

        fields = upload.model_dump(exclude={"text", "name"})
        return await self._store(once(), _Named(upload.name, fields), Who.of(request), via="text")

    async def _store(
        self,
        chunks: AsyncIterator[bytes],
        form: "Multipart | _Named",
        who: "Who",
        via: Any = "upload",
    ) -> Accepted:
        def check(head: bytes) -> None:
            readable_type(head, checked_name(form.name))

        async def confirm() -> None:
            asked = _validated(Form.model_validate, form.fields)
            if asked.trusted and who.role != "admin":
                raise Refusal("forbidden", "only an admin may bypass the scan", status=403)
            if asked.supersedes:
                await superseded(asked.project, asked.supersedes, self._env.log)

        stored = await self._env.blobs.put_stream(
            chunks, limit=self._limit, check=check, confirm=confirm
        )
        fields = _validated(Form.model_validate, form.fields)
        name = checked_name(form.name)
        media_type = readable_type(stored.head, name)
        offer = Offer(
            project=fields.project,
            source_id=stored.sha256,
            name=name,
            media_type=media_type,
            size_bytes=stored.size_bytes,
            valid_from=fields.valid_from or stated_valid_from(stored.head, media_type),
            source=fields.source,
            supersedes=fields.supersedes,
            trusted=fields.trusted,
            lane=fields.lane,
            via=via,
            actor=who.actor,
        )
        accepted = await accept(offer, self._env.log, self._identity)
        await check_bytes(accepted, self._env.log, self._env.blobs)
        return accepted


class _Named:
    """A name and fields, as `Multipart` has them."""

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self.name, self.fields = name, dict(fields)


def _validated(validate: Any, raw: Any) -> Any:
    try:
        return validate(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"]) or "body"
        raise Refusal("invalid-request", f"{where}: {first['msg']}") from error


def create_app(env: Env, identity: Identity) -> FastAPI:
    """The HTTP surface."""
    app = create_api("ingest", api_key=env.settings.api_key.get_secret_value(), health=env.health)
    uploads = Uploads(env, identity)

    @app.post(
        "/documents",
        status_code=202,
        response_model=Accepted,
        responses={200: {"model": Accepted, "description": "known already: `duplicate_of`"}},
    )
    async def post_document(request: Request) -> Response:
        accepted = await uploads.take(request)
        status = 200 if accepted.duplicate_of else 202
        return JSONResponse(accepted.model_dump(mode="json"), status)

    return app


async def build(env: Env) -> Service:
    """Ingest with its process managers."""
    await env.blobs.sweep()
    identity = Identity(await env.log.identity_key())
    zone = DropzoneSettings()
    dropped = Dropped(zone.dropzone) if zone.dropzone else None
    elsewhere = Elsewhere(dropped, env.settings.backups)
    eraser = Eraser(env.log, env.blobs, ParseCache(env.pool), elsewhere)
    app, jobs = create_app(env, identity), Jobs(env.log, env.blobs, eraser)
    add_control_routes(app, jobs)
    add_erasure_routes(app, env.log, eraser, jobs)
    add_project_routes(app, Projects(env.log, eraser))
    add_chain_routes(app, env.log)
    rate = AuditSettings().audit_per_minute
    auditor = Auditor(env.log, "ingest", BytesExaminer(env.log, env.blobs, jobs), rate)
    add_audit_route(app, auditor, "bytes")
    watch = ChainWatch(env.log)
    limit = env.settings.max_upload_bytes
    dropzone = open_dropzone(zone, env.log, env.blobs, identity, limit)
    return Service(
        "ingest",
        app=app,
        handlers=handlers,
        deps={
            "log": env.log,
            "eraser": eraser,
            "attachments": Attachments(env.log, env.blobs, identity),
        },
        background=(
            *((dropzone.run,) if dropzone else ()),
            *((auditor.run, watch.run) if rate else ()),
        ),
    )
