"""`kb verify` on a whole stack: what was broken under its feet is found, put right and told."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kernel.testing_wait import eventually
from tests.stack import KB, Stack

LAW = "# Act\n\nThe maximum fine for a breach is {} million euro.\n\n<!-- not shown -->\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {"KB_AUDIT_PER_MINUTE": "0", "KB_SCANNER_LEARNED": "off", "OMP_NUM_THREADS": "1"}
    made = Stack(tmp_path_factory.mktemp("verify"), "hashed", **settings)
    made.kb("up", "--detach")
    yield made
    made.kb("down")


def verify(stack: Stack, *words: str) -> tuple[int, Any]:
    """The exit code and what `--json` says."""
    command = [*KB, "verify", "--json", *words, "--data", str(stack.data.root)]
    done = subprocess.run(command, env=stack._env, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def kinds(told: Any) -> set[str]:
    return {f["what"] for check in told["checks"] for f in check["findings"]}


async def test_what_is_broken_under_a_running_stack_is_found_and_put_right(
    stack: Stack, tmp_path: Path
) -> None:
    for name, fine in (("a.md", "ten"), ("a.md", "twenty"), ("b.md", "thirty")):
        (tmp_path / name).write_text(LAW.format(fine))
        stack.kb("ingest", str(tmp_path / name), "--source", name)
    await eventually(lambda: verify(stack)[0] == 0, deadline=60)
    code, before = verify(stack)
    assert (code, before["result"]) == (0, "fine")
    assert [c["documents"] for c in before["checks"]] == [2, 2, 2]

    owner = await asyncpg.connect(stack.owner)
    await owner.execute("DELETE FROM read.chunk WHERE version_id IN (SELECT version_id FROM"
                        " read.version WHERE name = 'b.md')")  # fmt: skip
    await owner.execute("DELETE FROM read.validity WHERE valid_until IS NOT NULL")
    body = await owner.fetchval("SELECT body_sha256 FROM read.version WHERE name = 'b.md'")
    blob = stack.data.root / "blobs" / body[:2] / body[2:4] / body
    blob.unlink()

    assert verify(stack)[0] == 1
    code, told = verify(stack, "--repair")
    # The index needs the body, which is made again meanwhile.
    assert kinds(told) >= {"validity-missing", "blob-missing"}
    await eventually(blob.exists, deadline=60)
    await eventually(lambda: verify(stack, "--repair")[0] == 0, deadline=60)
    types = {r["type"] for r in await owner.fetch("SELECT DISTINCT type FROM log.event")}
    assert {"ProjectionDrifted", "IndexDrifted", "BytesDrifted"} <= types
    async with stack.client() as client:
        found = await client.post("/query", json={"query": "thirty million"})
        assert "thirty million" in found.text

    anchor = f"{before['chain']['position']}:{before['chain']['fingerprint']}"
    assert verify(stack, "--anchor", anchor)[0] == 0
    await owner.execute("SET session_replication_role = replica")
    await owner.execute("UPDATE log.event SET actor = 'nobody' WHERE position = 2")
    await owner.close()
    code, told = verify(stack)
    assert (code, told["chain"]["faults"][0]["position"]) == (1, 2)


def test_a_viewer_may_not_verify(stack: Stack) -> None:
    command = [*KB, "verify", "--data", str(stack.data.root)]
    env = stack._env | {"KB_API_KEY": "wrong"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 2)
