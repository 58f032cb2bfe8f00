"""Which processes run, and exactly which environment each one gets. Pure."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import quote, urlsplit, urlunsplit

from cli.datadir import BEHIND_THE_DOOR
from contracts.flow import consumed_by

Config = Mapping[str, str]
"""Environment variables by name."""

TOGETHER = (("relay",), ("ingest",), ("scanner",), ("converter",), ("indexer", "search"), ("ui",))
"""Only one process may open an embedded vector shard, so indexer and search share one."""
APART = (("relay",), ("ingest",), ("scanner",), ("converter",), ("indexer",), ("search",), ("ui",))
"""With a Qdrant server every service is alone."""

_SYSTEM = (
    "PATH", "HOME", "XDG_CACHE_HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE",
    "LD_LIBRARY_PATH",
)  # fmt: skip
_EVERYBODY = ("KB_LOG_*", "KB_START_TIMEOUT", "OTEL_EXPORTER_*")
_THREADS = ("OMP_*", "MKL_*", "TORCH_NUM_THREADS")
_CLOUD = ("AWS_*", "GOOGLE_*", "AZURE_*")
"""Credentials of a blob store in a cloud."""
_HUB = ("HF_*", "HTTPS_PROXY", "NO_PROXY")
_AI = ("KB_AI_*", "HTTPS_PROXY", "NO_PROXY")
"""The gateway of language models."""
_VECTORS = ("KB_EMBED*", "KB_TORCH_*", "KB_MODEL_CACHE", "KB_QDRANT_*", *_HUB, *_THREADS)
_OWN: Mapping[str, tuple[str, ...]] = {
    "relay": (),
    "ingest": (
        "KB_MAX_UPLOAD_BYTES",
        "KB_CONCURRENCY",
        "KB_DROPZONE*",
        "KB_BACKUPS",
        "KB_AUDIT_*",
    ),
    "scanner": ("KB_CONCURRENCY", *_AI, *_THREADS),
    "converter": (
        "KB_MAX_UPLOAD_BYTES",
        "KB_CONCURRENCY",
        "KB_DOCLING_*",
        "KB_MODEL_CACHE",
        *_HUB,
        *_THREADS,
    ),
    "indexer": ("KB_CONCURRENCY", "KB_AUDIT_*", *_VECTORS),
    "search": ("KB_RERANKER*", "KB_AUDIT_*", *_VECTORS),
    "ui": (
        "KB_API_KEY",
        "KB_BACKUPS",
        "KB_BOOTSTRAP_PASSWORD",
        "KB_FORWARDED_*",
        "KB_PUBLIC_HOST",
        "KB_SESSION_*",
    ),
}
"""Names or patterns of what a service may have besides `KB_<SERVICE>_*`."""
_WITHOUT_BLOBS = frozenset({"relay", "ui"})
_API = "KB.API"
"""The subjects under which a user of our own bus finds JetStream (`kernel.provision.API`)."""


@dataclass(frozen=True)
class Spec:
    """One process: its services, its port, its whole environment."""

    services: tuple[str, ...]
    port: int
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        """`indexer+search`."""
        return "+".join(self.services)

    def command(self) -> list[str]:
        """`kb run SERVICE...`; -P: nothing is imported from the folder that we are in."""
        return [sys.executable, "-P", "-m", "cli.main", "run", *self.services]


@dataclass(frozen=True)
class Stores:
    """Where the stores are: URLs without a service's user in them."""

    data: str
    postgres: str
    nats: str
    blobs: str
    external_nats: bool = False


def groups(config: Config) -> tuple[tuple[str, ...], ...]:
    """The services of each process."""
    return APART if config.get("KB_QDRANT_URL") else TOGETHER


def plan(config: Config, stores: Stores, ports: Mapping[str, int], run_id: str) -> list[Spec]:
    """Every process in order of start.

    Args:
        config: settings and secrets of the installation.
        stores: where Postgres, NATS and the blobs are.
        ports: port by process name.
        run_id: marks every process of this run, to find what is left after a crash.
    """
    specs = []
    where = {s: ports["+".join(g)] for g in groups(config) for s in g}
    for services in groups(config):
        port = ports["+".join(services)]
        env = _environment(services, config, stores, where)
        specs.append(Spec(services, port, env | {"KB_PORT": str(port), "KB_RUN_ID": run_id}))
    return specs


def _environment(
    services: tuple[str, ...], config: Config, stores: Stores, where: Mapping[str, int]
) -> dict[str, str]:
    env = _chosen(config, (*_SYSTEM, *_EVERYBODY))
    env |= {"KB_DATA": stores.data, "PYTHONUNBUFFERED": "1"}
    for service in services:
        env |= _chosen(config, (*_OWN[service], f"KB_{service.upper()}_*"))
        if service not in _WITHOUT_BLOBS:
            env["KB_BLOBS"] = stores.blobs
            if "://" in stores.blobs:
                env |= _chosen(config, _CLOUD)
    env |= _database(services, config, stores)
    env |= _bus(services, config, stores)
    env |= _door_keys(services, config)
    if "ui" in services:
        env |= {f"KB_{s.upper()}_URL": f"http://127.0.0.1:{where[s]}" for s in BEHIND_THE_DOOR}
    return env


def _door_keys(services: tuple[str, ...], config: Config) -> dict[str, str]:
    """What the front door shows each service, and `KB_API_KEY` of those behind it, which is that.

    Whoever has the API key may do anything at the front door, and may say whom it acts for behind
    it: with a key of its own a service opens nothing but itself.
    """
    of = {s: f"KB_DOOR_KEY_{g[0].upper()}" for g in groups(config) for s in g}
    known = {s: config[of[s]] for s in BEHIND_THE_DOOR if of[s] in config}
    if "ui" in services:
        return {f"KB_DOOR_KEY_{s.upper()}": key for s, key in known.items()}
    return {"KB_API_KEY": known[services[0]]} if services[0] in known else {}


def _chosen(config: Config, patterns: Iterable[str]) -> dict[str, str]:
    wanted = tuple(patterns)
    return {k: v for k, v in config.items() if any(fnmatchcase(k, p) for p in wanted)}


def _database(services: tuple[str, ...], config: Config, stores: Stores) -> dict[str, str]:
    """`KB_POSTGRES_URL`; in a shared process also one a service, `KB_POSTGRES_URL_<SERVICE>`."""
    urls = {
        s: with_user(stores.postgres, f"kb_{s}", config[f"KB_DB_PASSWORD_{s.upper()}"])
        for s in services
    }
    env = {"KB_POSTGRES_URL": urls[services[0]]}
    if len(services) > 1:
        env |= {f"KB_POSTGRES_URL_{s.upper()}": url for s, url in urls.items()}
    return env


def _bus(services: tuple[str, ...], config: Config, stores: Stores) -> dict[str, str]:
    """`KB_NATS_URL`, for those that read the bus and for the relay that feeds it."""
    user = next((s for s in services if s == "relay" or consumed_by(s)), None)
    if user is None:
        return {}
    if stores.external_nats:
        return {"KB_NATS_URL": stores.nats} | _chosen(config, ("KB_NATS_API",))
    url = with_user(stores.nats, user, config[f"KB_BUS_PASSWORD_{user.upper()}"])
    return {"KB_NATS_URL": url} if user == "relay" else {"KB_NATS_URL": url, "KB_NATS_API": _API}


def with_user(url: str, user: str, password: str) -> str:
    """The same address with this user and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(user)}:{quote(password, safe='')}@{host}"))
