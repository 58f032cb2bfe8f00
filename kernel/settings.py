"""Settings that every process may have. Read once, at the start, from the environment."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Environment(BaseSettings):
    """Base of all settings. What is refused is not repeated in the error: it may be a password."""

    model_config = SettingsConfigDict(
        env_prefix="KB_", frozen=True, extra="ignore", hide_input_in_errors=True
    )


class Settings(Environment):
    """Environment variables with prefix `KB_`. A process gets those that it needs and no others."""

    data: Path = Field(Path("data"), description="folder of everything that is kept")
    postgres_url: str = Field("", description="database of this service's role")
    postgres_url_indexer: str = Field("", description="its own role, where it shares a process")
    postgres_url_search: str = Field("", description="its own role, where it shares a process")
    nats_url: str = Field("", description="JetStream, with this service's user")
    nats_api: str = Field(
        "$JS.API", description="subjects of JetStream's API; KB.API with the users that we make"
    )
    blobs: str = Field("", description="folder or URL of the blob store; default DATA/blobs")
    backups: Path | None = Field(
        None, description="folder of backups (kb backup): an erasure is written down there too"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(0, description="port to listen on; 0 lets the system choose")
    api_key: SecretStr = Field(
        SecretStr(""),
        description="what callers must show; behind the front door: KB_DOOR_KEY_<SERVICE>",
    )
    forwarded_allow_ips: str = Field(
        "", description="addresses of proxies whose X-Forwarded-For is believed; empty: none"
    )
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR")
    log_format: str = Field("json", pattern="^(json|text)$", description="json or text")
    qdrant_url: str = Field("", description="Qdrant server; empty: the embedded engine")
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="key of that server")
    max_upload_bytes: int = Field(512 * 1024 * 1024, description="largest file that is taken")
    concurrency: int = Field(1, ge=1, description="deliveries worked on at once, per consumer")
    start_timeout: float = Field(120, description="seconds to wait for Postgres and NATS")

    def postgres_for(self, service: str) -> str:
        """The database of one service's role."""
        return str(getattr(self, f"postgres_url_{service}", "") or self.postgres_url)

    @property
    def blob_url(self) -> str:
        """Where blobs are."""
        return self.blobs or str(self.data / "blobs")
