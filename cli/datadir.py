"""The data folder: where everything is, and the secrets in its `.env`."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

ROLES = ("ingest", "converter", "scanner", "indexer", "search", "ui", "relay")
BUS_USERS = ("admin", "relay", "ingest", "converter", "scanner", "indexer")
OUTSIDE_BUS_USERS = ("replay", "subscriber")
"""Users of the bus that are no service of ours: `kernel.provision.OUTSIDE_USERS`."""
BEHIND_THE_DOOR = ("ingest", "search", "scanner", "indexer")
"""Services that the front door calls."""
_GENERATED = (
    "KB_API_KEY",
    *(f"KB_DOOR_KEY_{s.upper()}" for s in BEHIND_THE_DOOR),
    "KB_OWNER_PASSWORD",
    *(f"KB_DB_PASSWORD_{r.upper()}" for r in ROLES),
    *(f"KB_BUS_PASSWORD_{u.upper()}" for u in (*BUS_USERS, *OUTSIDE_BUS_USERS)),
)
_LOG_LIMIT_BYTES = 10 * 1024 * 1024
_OLD_LOGS = 3


@dataclass(frozen=True)
class DataDir:
    """Paths below one folder. Nothing is created before `prepare`."""

    root: Path

    @property
    def env_file(self) -> Path:
        return self.root / ".env"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def dropzone(self) -> Path:
        return self.root / "dropzone"

    def prepare(self) -> None:
        """Create the folders, closed to others; 0711 is for Postgres, which may be another user."""
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        for folder in (self.run, self.logs, self.blobs):
            folder.mkdir(mode=0o700, exist_ok=True)

    def log_file(self, name: str) -> Path:
        """`logs/<name>.log`, for a process that starts now: a big old one is set aside."""
        file = self.logs / f"{name}.log"
        if file.exists() and file.stat().st_size > _LOG_LIMIT_BYTES:
            for n in range(_OLD_LOGS, 0, -1):
                older = file.with_suffix(f".log.{n - 1}") if n > 1 else file
                if older.exists():
                    older.replace(file.with_suffix(f".log.{n}"))
        file.touch(mode=0o600)
        return file

    def settings(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What `.env` says, then what the environment says; the environment wins."""
        saved = {k: v for k, v in dotenv_values(self.env_file).items() if v}
        return saved | {k: v for k, v in environ.items() if v}

    def ensure_secrets(self, environ: Mapping[str, str]) -> None:
        """Write the secrets that are missing. Existing lines of `.env` stay as they are."""
        known = self.settings(environ)
        new = {key: secrets.token_urlsafe(32) for key in _GENERATED if key not in known}
        if new:
            self.remember(new)

    def remember(self, values: Mapping[str, str]) -> None:
        """Add lines to `.env`, atomically, readable by this user only."""
        old = self.env_file.read_text() if self.env_file.exists() else ""
        if old and not old.endswith("\n"):
            old += "\n"
        text = old + "".join(f"{key}={value}\n" for key, value in values.items())
        write_private(self.env_file, text)


def write_private(file: Path, text: str) -> None:
    """Replace `file` by `text` in one step, mode 0600."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
