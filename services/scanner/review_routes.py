"""`GET` and `POST /review/{version_id}`: for editors and administrators."""

from fastapi import FastAPI, Request, Response

from contracts.http import Reviewed, ReviewRequest, ReviewView
from kernel.blobs import Blobs
from kernel.errors import Refusal
from kernel.large import OneLarge
from kernel.log import Log
from kernel.web import actor, role
from services.scanner.exhibit import exhibit
from services.scanner.review import review

REVIEWERS = frozenset({"editor", "admin"})


def add_review_routes(app: FastAPI, event_log: Log, blobs: Blobs, large: OneLarge) -> None:
    """What waits for a person, and the decision."""

    @app.get("/review/{version_id}", response_model=ReviewView)
    async def get_review(version_id: str, request: Request, response: Response) -> ReviewView:
        check_reviewer(request)
        # A text that nobody may see before somebody decided: no cache keeps it.
        response.headers["cache-control"] = "no-store"
        return await exhibit(version_id, event_log, blobs, large)

    @app.post("/review/{version_id}", response_model=Reviewed)
    async def post_review(version_id: str, body: ReviewRequest, request: Request) -> Reviewed:
        check_reviewer(request)
        return await review(version_id, body, actor(request), event_log)


def check_reviewer(request: Request) -> None:
    """Who asks may review.

    Raises:
        Refusal: `forbidden` (403).
    """
    if role(request) not in REVIEWERS:
        raise Refusal("forbidden", "this needs the role editor", status=403)
