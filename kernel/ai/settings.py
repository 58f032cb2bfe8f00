"""Where the gateway is."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class AiSettings(BaseSettings):
    """`KB_AI_…`, for the services that ask a model."""

    model_config = SettingsConfigDict(
        env_prefix="KB_AI_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    url: str = Field(
        "", description="OpenAI-compatible address, as in http://gateway:4000/v1; empty: AI is off"
    )
    key: SecretStr = Field(SecretStr(""), description="key of the gateway")
    model: str = Field("", description="the model's name as the gateway knows it")
