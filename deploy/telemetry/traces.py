"""Traces by OpenTelemetry, sent as OTLP over HTTP. Its packages are the extra `traces`, imported only if it is on."""

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from deploy.secret_files import check_certificates, secret_of
from deploy.telemetry.export_queue import ExportQueue
from master_dataset import tracing
from master_dataset.errors import OperatorError
from master_dataset.tracing import Attributes, Kind

try:
    from opentelemetry import context as contexts
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult, TraceIdRatioBased
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as missing:
    raise OperatorError(
        f"GALATEA_TRACES_ENDPOINT is set, and the package `{missing.name}` is not installed",
        do="pip install 'galatea-platform[traces]', or unset it",
    ) from missing

if TYPE_CHECKING:
    from opentelemetry.util.types import Attributes as AnyAttributes

    from deploy.settings import Settings

SEND_SECONDS = 10.0
"""How long one request to the backend may take, with what it repeats."""
_KINDS: Mapping[Kind, trace.SpanKind] = {
    "internal": trace.SpanKind.INTERNAL,
    "server": trace.SpanKind.SERVER,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}
_PROPAGATOR = TraceContextTextMapPropagator()


def install_traces(settings: "Settings", process: str) -> Callable[[], None]:
    """Create spans in this process from now on, and send them.

    Args:
        settings: Of the deployment; their endpoint of traces is set.
        process: Name of the component.

    Returns:
        What sends the rest before the process ends, for at most two seconds.

    Raises:
        OperatorError: The headers or the authorities cannot be read.
    """
    own = settings.traces
    if own.ca_file:
        check_certificates("GALATEA_TRACES_CA_FILE", own.ca_file)
    headers = parsed_headers(secret_of("GALATEA_TRACES_HEADERS", own.headers, own.headers_file))
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what fails is counted, and logged once a minute
    exporter = OTLPSpanExporter(
        own.endpoint,
        certificate_file=own.ca_file or None,
        headers=headers,
        timeout=SEND_SECONDS,
        compression=Compression.Gzip,
    )
    tracer = OpenTelemetryTracer(exporter, process, own.sample_ratio)
    tracing.install(tracer)
    return tracer.close


def parsed_headers(text: str) -> Mapping[str, str]:
    """Return the header fields of a JSON object; none for "". OperatorError, without the text, if it is none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not (isinstance(found, dict) and all(isinstance(value, str) for value in found.values())):
        message = "GALATEA_TRACES_HEADERS is no JSON object of texts"
        raise OperatorError(message, do='correct it, for example {"Authorization": "Bearer TOKEN"}')
    return found


class LinkedOrRatio(Sampler):
    """Samples a root if it is linked to a sampled trace, and otherwise a share of all."""

    def __init__(self, ratio: float) -> None:
        """`ratio`: the share of roots without links, 0 to 1."""
        self._others = TraceIdRatioBased(ratio)

    def should_sample(  # noqa: PLR0913, PLR0917 - OpenTelemetry's signature
        self,
        parent_context: contexts.Context | None,
        trace_id: int,
        name: str,
        kind: trace.SpanKind | None = None,
        attributes: "AnyAttributes" = None,
        links: "Sequence[trace.Link] | None" = None,
        trace_state: "trace.TraceState | None" = None,
    ) -> SamplingResult:
        """Record spans that continue or link to a sampled trace, and a share of the others."""
        if any(link.context.trace_flags.sampled for link in links or ()):
            return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes)
        return self._others.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        """Describe it, as OpenTelemetry wants it."""
        return f"LinkedOrRatio{{{self._others.get_description()}}}"


class QueueProcessor(SpanProcessor):
    """Puts each sampled span into the queue when it ends."""

    def __init__(self, queue: ExportQueue[ReadableSpan]) -> None:
        """`queue`: sends them."""
        self._queue = queue

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span if it is sampled."""
        if span.context is not None and span.context.trace_flags.sampled:
            self._queue.put(span)


class _OpenSpan:
    """A span that has not ended, as `tracing.Span`."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set(self, name: str, value: str | int) -> None:
        self._span.set_attribute(name, value)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()


class OpenTelemetryTracer:
    """The tracer of a process, as `tracing.Tracer`."""

    def __init__(self, exporter: SpanExporter, process: str, ratio: float) -> None:
        """Start to export.

        Args:
            exporter: Sends spans.
            process: Name of the component.
            ratio: The share of traces to record, of those that begin here.
        """

        def send(spans: Sequence[ReadableSpan]) -> None:
            if exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise ConnectionError

        self._exporter, self._queue = exporter, ExportQueue[ReadableSpan]("traces", send)
        resource = Resource.create(
            {
                "service.namespace": "galatea",
                "service.name": f"galatea-{process}",
                "service.version": version("galatea-platform"),
                "service.instance.id": str(uuid4()),
            }
        )
        provider = TracerProvider(ParentBased(LinkedOrRatio(ratio)), resource, shutdown_on_exit=False)
        provider.add_span_processor(QueueProcessor(self._queue))
        self._tracer = provider.get_tracer("galatea", version("galatea-platform"))

    def close(self) -> None:
        """Send the rest, for at most two seconds."""
        self._queue.close()
        self._exporter.shutdown()

    def span(
        self, name: str, kind: Kind, attributes: Attributes, carrier: Mapping[str, str] | None
    ) -> AbstractContextManager[tracing.Span]:
        """See `tracing.Tracer`."""
        parent = None if carrier is None else _PROPAGATOR.extract(carrier, contexts.Context())
        return self._open(name, kind, attributes, parent)

    @contextmanager
    def _open(
        self, name: str, kind: Kind, attributes: Attributes, parent: contexts.Context | None
    ) -> Iterator[tracing.Span]:
        span = self._tracer.start_span(name, parent, _KINDS[kind], dict(attributes))
        token = contexts.attach(trace.set_span_in_context(span))
        opened = _OpenSpan(span)
        try:
            yield opened
        except BaseException as error:
            opened.fail(type(error).__name__)  # its message may quote data
            raise
        finally:
            contexts.detach(token)
            opened.end()

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
        """See `tracing.Tracer`."""
        context = contexts.Context() if parent is None else cast("contexts.Context", parent)
        began, ended = times_ns
        linked = [trace.Link(_span_context(each)) for each in links]
        span = self._tracer.start_span(name, context, _KINDS[kind], dict(attributes), linked, start_time=began)
        if error:
            _OpenSpan(span).fail(error)
        span.end(ended)
        return _ids(span.get_span_context()) if span.get_span_context().trace_flags.sampled else {}

    def context(self) -> object:
        """See `tracing.Tracer`."""
        return contexts.get_current()

    def traceparent(self) -> str:
        """See `tracing.Tracer`."""
        if not trace.get_current_span().get_span_context().trace_flags.sampled:
            return ""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier.get(tracing.TRACEPARENT, "")

    def log_ids(self) -> Mapping[str, str]:
        """See `tracing.Tracer`."""
        current = trace.get_current_span().get_span_context()
        return _ids(current) if current.is_valid else {}


def _span_context(traceparent: bytes) -> trace.SpanContext:
    context = _PROPAGATOR.extract({tracing.TRACEPARENT: traceparent.decode()}, contexts.Context())
    return trace.get_current_span(context).get_span_context()


def _ids(context: trace.SpanContext) -> Mapping[str, str]:
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
