"""One-shot tasks of the compose file, run in the image of the services before they start.

    python prepare.py nats-config FILE   the bus's configuration: one user a service, least rights
    python prepare.py migrate            database, roles and their passwords, stream and consumers

Both may run any number of times; running them again after an upgrade is how one upgrades.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cli.datadir import BUS_USERS, OUTSIDE_BUS_USERS, ROLES, write_private
from kernel.migrations import migrate
from kernel.provision import nats_config, provision

_SERVER = """\
host: 0.0.0.0
port: 4222
http: 127.0.0.1:8222
max_payload: 1MB
jetstream { store_dir: /nats, sync_interval: 10s }
"""
"""10 s: a lost tail is published again by the relay. Port 8222 is for the health check only."""


def bus_config(environ: Mapping[str, str]) -> str:
    """Configuration of nats-server.

    Raises:
        KeyError: a `KB_BUS_PASSWORD_<USER>` is missing.
    """
    names = (*BUS_USERS, *OUTSIDE_BUS_USERS)
    return _SERVER + nats_config({u: environ[f"KB_BUS_PASSWORD_{u.upper()}"] for u in names})


async def bring_up_to_date(environ: Mapping[str, str]) -> list[str]:
    """Migrate Postgres as its owner, then provision JetStream; returns the migrations applied.

    Raises:
        KeyError: `KB_POSTGRES_URL`, `KB_NATS_URL` or a `KB_DB_PASSWORD_<ROLE>` is missing.
    """
    passwords = {f"kb_{r}": environ[f"KB_DB_PASSWORD_{r.upper()}"] for r in ROLES}
    applied = await migrate(environ["KB_POSTGRES_URL"], passwords)
    await provision(environ["KB_NATS_URL"])
    return applied


def main(words: list[str]) -> int:
    """Run a task; 2 for wrong usage."""
    match words:
        case ["nats-config", file]:
            write_private(Path(file), bus_config(os.environ))
        case ["migrate"]:
            applied = asyncio.run(bring_up_to_date(os.environ))
            sys.stdout.write(f"applied: {', '.join(applied) or 'nothing new'}\n")
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
