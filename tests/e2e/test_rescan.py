"""Rules that come later, through the whole stack: what is indexed and bad leaves it and waits."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernel.testing_wait import eventually
from tests.e2e.test_line import ingest, query
from tests.stack import Stack

ROOT = Path(__file__).parents[2]
GOOD = "# Act\n\nThe maximum fine for a breach is twenty million euro.\n"
BAD = "# Guide\n\nThe purple walrus of number {n} swims in the northern sea.\n"
HIDDEN = "<html><body><h1>Notes</h1><p>The harbour opens at seven.</p><!-- purple walrus --></body>"
RULE = """
kind = "override"

[[rule]]
id = "override.test.walrus"
severity = "high"
why = "For tests."
anchors = ["purple walrus"]
regex = "purple walrus"
positive = "purple walrus"
negative = "walrus"
"""


class Installed(Stack):
    """A stack that runs a copy of the code, whose rules may be changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "hashed")
        self.code = folder / "code"
        for package in ("cli", "contracts", "kernel", "services"):
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, self.code / package, ignore=skip)
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        site = next((folder / "venv").glob("lib/python*/site-packages"))
        # Paths in the order of precedence; the .pth files of the second one are not read.
        (site / "code.pth").write_text(f"{self.code}\n{sysconfig.get_path('purelib')}\n")
        # Without -P the code of this folder would come first.
        self.command = [str(folder / "venv" / "bin" / "python"), "-P", "-m", "cli.main"]

    def kb(self, *words: str) -> str:
        """As in any stack, by the copy."""
        command = [*self.command, *words, "--data", str(self.data.root)]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr[-3000:]}{done.stdout[-500:]}")
        return done.stdout

    def new_rules(self) -> None:
        """Another rule is there, and the scanner is started anew by the supervisor."""
        rules = self.code / "services" / "scanner" / "rules" / "walrus.toml"
        rules.write_text(RULE, "utf-8")
        scanner = next(p for p in self.state.processes if p.name == "scanner")
        os.kill(scanner.pid, signal.SIGTERM)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    if sys.platform == "win32":
        pytest.skip("no symbolic links")
    made = Installed(tmp_path_factory.mktemp("rescan"))
    made.kb("up", "--detach")
    yield made
    made.kb("down")


async def status(client: httpx.AsyncClient, version_id: str) -> str:
    return str((await client.get(f"/documents/{version_id}")).json()["status"])


async def titles(client: httpx.AsyncClient, text: str) -> set[str]:
    return {hit["version_id"] for hit in await query(client, text, top_k=50)}


async def test_what_later_rules_find_leaves_the_index_and_a_person_decides(
    stack: Installed,
) -> None:
    async with stack.client() as client:
        good = (await ingest(client, "act.md", GOOD)).version_id
        bad = [(await ingest(client, f"{n}.md", BAD.format(n=n))).version_id for n in range(2)]
        hidden = (await ingest(client, "notes.html", HIDDEN)).version_id
        assert await titles(client, "purple walrus") >= {good, *bad, hidden}
        before = (await client.get("/rescan")).json()["ruleset"]
        stack.new_rules()

        async def renewed() -> bool:
            reply = await client.get("/rescan")
            return reply.status_code == 200 and reply.json()["ruleset"] != before

        await eventually(renewed, deadline=60)
        assert await titles(client, "purple walrus") >= {good, *bad, hidden}
        told = stack.kb("rescan", "--wait")
        assert "finished  4/4" in told
        assert "3 to review" in told
        for version_id in (*bad, hidden):
            assert version_id in told

        async def gone() -> bool:
            return await titles(client, "purple walrus harbour") == {good}

        await eventually(gone, deadline=60)
        for version_id in (*bad, hidden):
            assert await status(client, version_id) == "review"
            assert (await client.get(f"/documents/{version_id}/body")).status_code == 404

        await decide(client, bad[0], "release")
        await decide(client, bad[1], "reject")

        async def settled() -> bool:
            return await titles(client, "purple walrus harbour") == {good, bad[0]}

        await eventually(settled, deadline=60)
        assert await status(client, bad[1]) == "rejected"
        rebuilt = (await client.post("/rebuild", json={})).json()["rebuilt"][0]
        assert rebuilt["versions"] == 2
        assert await titles(client, "purple walrus harbour") == {good, bad[0]}
        report = (await client.get("/rescan")).json()["rescans"][0]
        found = (await client.get(f"/rescan/{report['rescan_id']}")).json()["hits"]
        decisions = {hit["version_id"]: hit["decision"] for hit in found}
        assert decisions == {bad[0]: "released", bad[1]: "rejected", hidden: "open"}
        assert {hit["verdict"] for hit in found} == {"block"}


async def decide(client: httpx.AsyncClient, version_id: str, decision: str) -> None:
    body: dict[str, Any] = {"decision": decision, "reason": "looked at it"}
    reply = await client.post(f"/review/{version_id}", json=body)
    assert reply.status_code == 200, reply.text
