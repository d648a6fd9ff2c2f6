"""Spans of requests, answers and micro-batches, for processes that have a tracer. Without one, none is created.

The tracer belongs to the process, like failpoints: `deploy.telemetry.traces` installs one of OpenTelemetry. Names and
attributes follow OpenTelemetry's semantic conventions. A span never holds data of tenants: no path, query, address,
store, key or payload.
"""

import re
import time
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, Protocol

Kind = Literal["internal", "server", "producer", "consumer"]
Attributes = Mapping[str, str | int | float | bool]
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
"""Header fields of W3C Trace Context. Records in Kafka carry only the first one."""
MOST_LINKS = 64
"""Maximum number of traces that the span of a micro-batch is linked to."""
_SAMPLED = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f][13579bdf]")


class Span(Protocol):
    """A span that has not ended."""

    def rename(self, name: str) -> None:
        """Change its name."""

    def set(self, name: str, value: str | int) -> None:
        """Set an attribute."""

    def fail(self, kind: str) -> None:
        """Mark it as failed. `kind`: the type of the error, never its message, which may quote data."""

    def end(self) -> None:
        """End it before its block ends."""


class Tracer(Protocol):
    """Creates spans: `deploy.telemetry.traces.OpenTelemetryTracer`, or a fake in tests."""

    def span(
        self, name: str, kind: Kind, attributes: Attributes, carrier: Mapping[str, str] | None
    ) -> AbstractContextManager[Span]:
        """Return a span around a block. `carrier`: header fields that may name its parent; None: the current span."""

    def record(  # noqa: PLR0913 - clear by name
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        times_ns: tuple[int, int],
        *,
        parent: object = None,
        links: Collection[bytes] = (),
        error: str = "",
    ) -> Mapping[str, str]:
        """Record a span that has ended.

        Args:
            name: The name.
            kind: The kind.
            attributes: The attributes.
            times_ns: Start and end, in nanoseconds since 1970.
            parent: What `context` returned; None for the root of a trace.
            links: The `traceparent` of each trace that led to it. With a link it is always sampled.
            error: Type of the error that it ended with; "" if it succeeded.

        Returns:
            The ids for log events about it; empty if it was not sampled.
        """

    def context(self) -> object:
        """Return the current context, for `record`."""

    def traceparent(self) -> str:
        """Return the `traceparent` of the current span; "" if there is none, or if it is not sampled."""

    def log_ids(self) -> Mapping[str, str]:
        """Return trace and span id of the current span; empty if there is none."""


class _NoSpan:
    """The span of a process without a tracer."""

    def rename(self, name: str) -> None:
        pass

    def set(self, name: str, value: str | int) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


_NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())
_tracer: Tracer | None = None


def install(tracer: Tracer | None) -> None:
    """Use this tracer in this process; None: none."""
    global _tracer  # noqa: PLW0603 - one per process
    _tracer = tracer


def is_on() -> bool:
    """Whether this process has a tracer."""
    return _tracer is not None


def span(
    name: str,
    kind: Kind = "internal",
    attributes: Attributes | None = None,
    *,
    carrier: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    """Return a span around a block; an exception marks it as failed.

    Args:
        name: The name, of few different ones.
        kind: The kind.
        attributes: The attributes; None for none.
        carrier: Header fields that may name the parent; None: the current span is the parent.
    """
    return _NO_SPAN if _tracer is None else _tracer.span(name, kind, attributes or {}, carrier)


def record_headers() -> tuple[tuple[str, bytes], ...]:
    """Return the headers for a record that the current span sends; none if it is not sampled."""
    traceparent = "" if _tracer is None else _tracer.traceparent()
    return ((TRACEPARENT, traceparent.encode()),) if traceparent else ()


def log_ids() -> Mapping[str, str]:
    """Return trace and span id of the current span, for a log event; empty if there is none."""
    return {} if _tracer is None else _tracer.log_ids()


def is_sampled(traceparent: bytes) -> bool:
    """Whether this is a valid `traceparent` of a trace that is recorded."""
    return _SAMPLED.fullmatch(traceparent) is not None


class MicroBatchSpan:
    """The span of a micro-batch, created when it has ended: only then is known which traces it continues.

    Attributes:
        attributes: To be added to.
        links: The `traceparent` of each sampled record, at most MOST_LINKS of them.
        log_ids: The ids for log events, once it has ended; empty if it was not sampled.
    """

    def __init__(self, attributes: Attributes) -> None:
        """Begin without links."""
        self.attributes: MutableMapping[str, str | int | float | bool] = dict(attributes)
        self.links: Collection[bytes] = ()
        self.log_ids: Mapping[str, str] = {}


@contextmanager
def micro_batch(name: str, attributes: Attributes) -> Iterator[MicroBatchSpan]:
    """Record a span for the block, as the root of its own trace, linked to those of its records."""
    began, error = time.time_ns(), ""
    found = MicroBatchSpan(attributes)
    try:
        yield found
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        if _tracer is not None:
            times = (began, time.time_ns())
            found.log_ids = _tracer.record(name, "consumer", found.attributes, times, links=found.links, error=error)


class Stages:
    """The stages of one answer: one span per stage, from its first start to its last end.

    Stages of several stores overlap, and parts of them run in a thread, so that they are measured and recorded later.
    """

    def __init__(self, tracer: Tracer | None) -> None:
        """`tracer`: None measures nothing."""
        self._tracer = tracer
        self._parent = None if tracer is None else tracer.context()
        self._times: dict[str, tuple[int, int]] = {}

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Measure a part of a stage."""
        return _NO_STAGE if self._tracer is None else self._measured(name)

    @contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        began = time.time_ns()
        try:
            yield
        finally:
            first, last = self._times.get(name, (began, began))
            self._times[name] = (min(first, began), max(last, time.time_ns()))

    def record(self) -> None:
        """Record the spans."""
        if self._tracer is not None:
            for name, times in self._times.items():
                self._tracer.record(name, "internal", {}, times, parent=self._parent)


_NO_STAGE: AbstractContextManager[None] = nullcontext()
NO_STAGES = Stages(None)
"""Measures nothing."""


@contextmanager
def _stages(name: str, tracer: Tracer) -> Iterator[Stages]:
    with tracer.span(name, "internal", {}, None):
        stages = Stages(tracer)
        try:
            yield stages
        finally:
            stages.record()


_NOT_STAGED: AbstractContextManager[Stages] = nullcontext(NO_STAGES)


def stages(name: str) -> AbstractContextManager[Stages]:
    """Return a span of that name, whose stages become its children."""
    return _NOT_STAGED if _tracer is None else _stages(name, _tracer)
