"""Logs one event a line, traces that follow a document, Prometheus metrics."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Gauge, Histogram

HANDLED = Counter("kb_handled_total", "Deliveries by outcome", ["service", "event", "outcome"])
HANDLER_SECONDS = Histogram(
    "kb_handler_seconds",
    "Seconds in a handler",
    ["service", "event"],
    buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300),
)
RELAY_POSITION = Gauge("kb_relay_position", "Position of the newest event on JetStream")
RELAY_RESYNCS = Counter(
    "kb_relay_resync_total", "Times the relay asked the stream anew", ["reason"]
)
PROJECTION_POSITION = Gauge("kb_projection_position", "Position a projection reflects", ["name"])
LOG_HEAD = Gauge("kb_log_head", "Position of the newest event in the log")
QUERY_SECONDS = Histogram(
    "kb_query_seconds",
    "Seconds in a query, by part",
    ["part"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5),
)
AUDITED = Counter("kb_audited_total", "Documents that the auditor compared", ["check"])
CHAIN_CHECKED = Gauge("kb_chain_position", "Up to which position the log was checked")
CHAIN_FAULTS = Gauge("kb_chain_faults", "Events of the log that are not as they were recorded")
DRIFT = Counter(
    "kb_drift_total", "Things that were not what the log says", ["check", "what", "outcome"]
)
AI_SECONDS = Histogram(
    "kb_ai_seconds",
    "Seconds in a call of a model",
    ["purpose"],
    buckets=(0.1, 0.5, 1, 2, 5, 10, 15, 30, 60),
)
AI_CALLS = Counter("kb_ai_calls_total", "Calls of a model by outcome", ["purpose", "outcome"])
AI_TOKENS = Counter("kb_ai_tokens_total", "Tokens that the gateway counted", ["purpose", "side"])

_PROPAGATOR = TraceContextTextMapPropagator()


def setup(service: str, *, level: str = "INFO", json_lines: bool = True) -> None:
    """Configure logging and tracing of this process, once."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s", force=True)
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if json_lines else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    structlog.contextvars.bind_contextvars(service=service)
    trace.set_tracer_provider(
        TracerProvider(resource=Resource.create({"service.name": f"kb-{service}"}))
    )


@contextmanager
def span(name: str, traceparent: str | None = None) -> Iterator[str | None]:
    """A span under a stored `traceparent`; yields the `traceparent` for what comes out of it."""
    parent = _PROPAGATOR.extract({"traceparent": traceparent}) if traceparent else None
    with trace.get_tracer("citelog").start_as_current_span(name, context=parent):
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        yield carrier.get("traceparent")
