"""The relay as a process of its own."""

from kernel.relay import Relay
from kernel.service import Env, Service


async def build(env: Env) -> Service:
    """A service without handlers: it reads the log in order and publishes."""
    return Service("relay", background=(Relay(env.log, env.settings.nats_url).run,))
