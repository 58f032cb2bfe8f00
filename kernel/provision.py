"""The stream and the durable consumers on JetStream, made from the flow table by one command."""

from collections.abc import Iterator, Mapping

import nats
import nats.errors
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import NotFoundError

from contracts.events import Event, Lane, subject
from contracts.flow import SERVICES, consumed_by, durable

STREAM = "KB_EVENTS"
LANES: tuple[Lane, ...] = ("live", "bulk")
ACK_WAIT = 20.0
"""Seconds until a silent worker is taken for dead; workers beat every quarter of it."""
MAX_ACK_PENDING = 64
ACCOUNT = "KB"
"""The account of the stream; the relay and the administrator are in it, and nobody else."""
API = "KB.API"
"""Where a service's account finds JetStream: under the usual name every account has one of its own,
which answers that there is no JetStream."""
NOTHING = "_kb.none"
_STREAM_USERS = frozenset({"relay", "admin"})
OUTSIDE = "OUTSIDE"
"""The account of other products: what is published in it reaches no service."""
OUTSIDE_REPLAYS = "kb.replay."
"""Subjects of replays begin so."""
OUTSIDE_USERS = ("replay", "subscriber")
_OUTSIDE_JETSTREAM = "{ max_mem: 16M, max_store: 1G, max_streams: 16, max_consumers: 64 }"
"""Streams that other products make of what they hear."""


def stream_config(replicas: int = 1) -> StreamConfig:
    """`KB_EVENTS`: a cache of the log with a horizon of 14 days. Deletion by sequence stays allowed
    (erasure), purging does not."""
    return StreamConfig(
        name=STREAM,
        subjects=["kb.evt.>"],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_age=14 * 86400,
        max_msg_size=256 * 1024,
        num_replicas=replicas,
        duplicate_window=120,
        allow_direct=True,
        deny_purge=True,
    )


def consumers() -> Iterator[tuple[str, type[Event], Lane]]:
    """`(service, event, lane)` of every durable consumer."""
    for service in SERVICES:
        for step in consumed_by(service):
            assert not isinstance(step.consumes, str)  # noqa: S101 - consumed_by leaves markers out
            for lane in LANES:
                yield service, step.consumes, lane


def consumer_config(service: str, event: type[Event], lane: Lane) -> ConsumerConfig:
    """A pull consumer without server back-off (it would replace `ack_wait`) and without
    `max_deliver` (a message past it is stuck for ever): the kernel counts and gives up."""
    return ConsumerConfig(
        durable_name=durable(service, event, lane),
        filter_subject=subject(lane, event.__name__, "*"),
        ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.ALL,
        ack_wait=ACK_WAIT,
        max_deliver=-1,
        max_ack_pending=MAX_ACK_PENDING,
    )


async def provision(nats_url: str, *, replicas: int = 1) -> None:
    """Create or update the stream and all consumers. Services only bind to what is made here."""
    connection = await nats.connect(nats_url)
    try:
        js = connection.jetstream()
        await _stream(js, stream_config(replicas))
        for service, event, lane in consumers():
            await js.add_consumer(STREAM, consumer_config(service, event, lane))
    finally:
        await connection.close()


async def _stream(js: JetStreamContext, config: StreamConfig) -> None:
    try:
        await js.stream_info(STREAM)
    except NotFoundError:
        await js.add_stream(config)
    else:
        await js.update_stream(config)


def nats_config(users: Mapping[str, str]) -> str:
    """Server configuration: an account a service, and one for the stream.

    Args:
        users: user name (`relay`, `admin`, a service, or one of `OUTSIDE_USERS`) → password.

    Only `relay` may publish events, and delete one, so a compromised parser cannot forge one on the
    bus. `admin` provisions. `replay` publishes replays, `subscriber` hears these and the events, in
    an account from which nothing gets back. The others see nothing but their own consumers, as
    services of the stream's account: an answer never leaves the account that asked. With one
    account for all, a service could name an event's subject as the place for an answer, and the
    stream would have taken it in.
    """
    accounts: list[str] = []
    offered: list[str] = []
    inside: list[str] = []
    outside: list[str] = []
    for name, password in users.items():
        publish, subscribe = _rights(name)
        user = (
            f'{{ user: "{name}", password: "{password}", permissions: {{\n'
            f"      publish: [{', '.join(map(_quote, publish))}]\n"
            f"      subscribe: [{', '.join(map(_quote, subscribe))}] }} }}"
        )
        if name in _STREAM_USERS or name in OUTSIDE_USERS:
            (inside if name in _STREAM_USERS else outside).append(user)
            continue
        uses = [s for s in publish if s != NOTHING]
        offered += [_offer(subject, name) for subject in uses]
        imports = ", ".join(map(_import, uses))
        accounts.append(f"  {name}: {{\n    users: [{user}]\n    imports: [{imports}]\n  }}")
    if outside:
        offered.append(f'{{ stream: "kb.evt.>", accounts: [{OUTSIDE}] }}')
        accounts.append(
            f"  {OUTSIDE}: {{\n    jetstream: {_OUTSIDE_JETSTREAM}\n"
            f"    users: [{', '.join(outside)}]\n"
            f'    imports: [{{ stream: {{ account: {ACCOUNT}, subject: "kb.evt.>" }} }}]\n  }}'
        )
    accounts.append(
        f"  {ACCOUNT}: {{\n    jetstream: enabled\n    users: [{', '.join(inside)}]\n"
        f"    exports: [{', '.join(offered)}]\n  }}"
    )
    return "accounts {\n" + "\n".join(accounts) + "\n}\n"


def _offer(subject: str, account: str) -> str:
    """Messages come as answers to one request, so that answer is a stream."""
    kind = "stream" if ".MSG.NEXT." in subject else "singleton"
    name = _quote(_of_server(subject))
    return f"{{ service: {name}, response_type: {kind}, accounts: [{account}] }}"


def _import(subject: str) -> str:
    theirs = _quote(_of_server(subject))
    return f"{{ service: {{ account: {ACCOUNT}, subject: {theirs} }}, to: {_quote(subject)} }}"


def _of_server(subject: str) -> str:
    return f"$JS.{subject.removeprefix('KB.')}" if subject.startswith(f"{API}.") else subject


def _quote(text: str) -> str:
    return f'"{text}"'


def _rights(user: str) -> tuple[list[str], list[str]]:
    if user == "admin":
        return [">"], [">"]
    if user == "relay":  # what it published it may delete: an erasure asks for that
        asks = (f"$JS.API.STREAM.INFO.{STREAM}", f"$JS.API.STREAM.MSG.DELETE.{STREAM}")
        return ["kb.evt.>", *asks], ["_INBOX.>"]
    if user == "replay":
        return [f"{OUTSIDE_REPLAYS}>"], ["_INBOX.>"]
    if user == "subscriber":
        return ["$JS.API.>", "$JS.ACK.>"], ["kb.evt.>", f"{OUTSIDE_REPLAYS}>", "_INBOX.>"]
    publish = []
    for service, event, lane in consumers():
        if service == user:
            name = durable(service, event, lane)
            publish += [
                f"{API}.CONSUMER.INFO.{STREAM}.{name}",
                f"{API}.CONSUMER.MSG.NEXT.{STREAM}.{name}",
                f"$JS.ACK.{STREAM}.{name}.>",
            ]
    return publish or [NOTHING], ["_INBOX.>"]
