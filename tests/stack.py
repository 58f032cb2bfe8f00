"""A whole stack of its own, started by `kb up` in a temporary folder."""

import os
import subprocess
import sys
from pathlib import Path

import httpx

from cli.datadir import DataDir
from cli.plan import with_user
from cli.runstate import State, read_state

KB = [sys.executable, "-m", "cli.main"]


class Stack:
    """A stack of its own in a temporary folder."""

    def __init__(self, folder: Path, embedder: str, **settings: str) -> None:
        self.data = DataDir(folder / "data")
        fixed = {"KB_EMBEDDER": embedder, "KB_RESTART_PAUSE_MAX": "0.5"}
        self._env = dict(os.environ) | fixed | settings

    def kb(self, *words: str) -> str:
        """Run a `kb` command; its standard output."""
        command = [*KB, *words, "--data", str(self.data.root)]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr[-3000:]}{done.stdout[-500:]}")
        return done.stdout

    @property
    def state(self) -> State:
        """Who runs."""
        state = read_state(self.data)
        if state is None:
            raise RuntimeError("the supervisor is gone")
        return state

    @property
    def config(self) -> dict[str, str]:
        """Secrets and settings."""
        return self.data.settings({})

    def client(self, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
        """A client of the front door."""
        key = self.config["KB_API_KEY"]
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(
            base_url=self.state.url, headers=headers, timeout=30, transport=transport
        )

    @property
    def owner(self) -> str:
        """The database as its owner."""
        return with_user(self.address("postgres"), "postgres", self.config["KB_OWNER_PASSWORD"])

    def address(self, name: str) -> str:
        """Address of a store."""
        return next(p.address for p in self.state.processes if p.name == name)
