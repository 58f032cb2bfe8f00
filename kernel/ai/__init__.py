"""Language models behind an address that speaks OpenAI's protocol. No address: AI is off."""

from kernel.ai.gateway import AiFailed, AiOff, Gateway, Message, open_gateway
from kernel.ai.settings import AiSettings

__all__ = ["AiFailed", "AiOff", "AiSettings", "Gateway", "Message", "open_gateway"]
