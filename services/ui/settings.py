"""What the front door reads from the environment."""

from pydantic import Field, HttpUrl, SecretStr

from kernel.settings import Environment


class UiSettings(Environment):
    """Settings of the service ui, prefix `KB_`."""

    api_key: SecretStr | None = Field(
        default=None,
        description="Key of programs and of the internal services; without it the API is closed",
    )
    door_key_ingest: SecretStr | None = Field(
        default=None, description="What ingest is shown; unset: KB_API_KEY"
    )
    door_key_search: SecretStr | None = Field(
        default=None, description="What search is shown; unset: KB_API_KEY"
    )
    door_key_scanner: SecretStr | None = Field(
        default=None, description="What scanner is shown; unset: KB_API_KEY"
    )
    door_key_indexer: SecretStr | None = Field(
        default=None, description="What indexer is shown; unset: KB_API_KEY"
    )
    ingest_url: HttpUrl = Field(
        default=HttpUrl("http://127.0.0.1:8101"), description="Where ingest listens"
    )
    search_url: HttpUrl = Field(
        default=HttpUrl("http://127.0.0.1:8102"), description="Where search listens"
    )
    scanner_url: HttpUrl = Field(
        default=HttpUrl("http://127.0.0.1:8103"), description="Where scanner listens"
    )
    indexer_url: HttpUrl = Field(
        default=HttpUrl("http://127.0.0.1:8104"), description="Where indexer listens"
    )
    bootstrap_password: SecretStr | None = Field(
        default=None,
        description="First password of the account `admin`, used while there is no account",
    )
    public_host: str = Field(
        default="",
        description="Host names under which people reach this page, comma-separated, no ports",
    )
    max_upload_bytes: int = Field(
        default=512 * 1024 * 1024, description="largest file that is taken"
    )
    session_hours: float = Field(
        default=12, gt=0, le=168, description="A sign-in ends after this many hours"
    )
    session_stream_seconds: float = Field(
        default=300,
        gt=0,
        description="A browser's event stream is renewed, and its session checked, this often",
    )

    @property
    def key(self) -> str | None:
        """The API key, or None when there is none (or an empty one)."""
        return (self.api_key.get_secret_value() or None) if self.api_key else None

    def door_key(self, service: str) -> str | None:
        """The key that an internal service is shown."""
        own: SecretStr | None = getattr(self, f"door_key_{service}")
        return own.get_secret_value() if own else self.key

    @property
    def hosts(self) -> frozenset[str]:
        """Configured host names, lower case."""
        return frozenset(h.strip().lower() for h in self.public_host.split(",") if h.strip())

    def upstream(self, service: str) -> str:
        """Base URL of an internal service, without a slash at its end.

        Raises:
            KeyError: no such service.
        """
        urls = {
            "ingest": self.ingest_url,
            "search": self.search_url,
            "scanner": self.scanner_url,
            "indexer": self.indexer_url,
        }
        return str(urls[service]).rstrip("/")
