"""`GET /projects`: which knowledge bases there are, and what is in them."""

from collections import defaultdict

from fastapi import FastAPI

from contracts.envelope import Envelope
from contracts.http import ProjectList, ProjectSummary
from contracts.states import WORKING
from kernel.db import queries
from kernel.log import Log
from kernel.projects import fold


def add_project_list(app: FastAPI, event_log: Log) -> None:
    """Register the route."""

    @app.get("/projects", response_model=ProjectList)
    async def get_projects() -> ProjectList:
        return await project_list(event_log)


async def project_list(event_log: Log) -> ProjectList:
    """All projects by id, as the read projection has them; titles are those of the log."""
    sql = queries("services.search", "projects")
    rows = [dict(r) async for r in sql.projects(event_log.pool, working=sorted(WORKING))]
    said: dict[str, list[Envelope]] = defaultdict(list)
    streams = [f"project-{row['project']}" for row in rows]
    for envelope in await event_log.streams(streams):
        said[envelope.project].append(envelope)
    titles = {row["project"]: fold(said[row["project"]]).title for row in rows}
    return ProjectList(
        projects=[
            ProjectSummary(title=titles[row["project"]] or row["project"], **row) for row in rows
        ]
    )
