"""Where the gateway is."""

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from kernel.settings import Environment


class AiSettings(Environment):
    """`KB_AI_…`, for the services that ask a model."""

    model_config = SettingsConfigDict(env_prefix="KB_AI_")

    url: str = Field(
        "", description="OpenAI-compatible address, as in http://gateway:4000/v1; empty: AI is off"
    )
    key: SecretStr = Field(SecretStr(""), description="key of the gateway")
    model: str = Field("", description="the model's name as the gateway knows it")
