"""A tracer whose spans stay in memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deploy.telemetry.traces import OpenTelemetryTracer
from master_dataset import tracing


@dataclass
class Spans:
    """What was exported once everything is sent."""

    exporter: InMemorySpanExporter
    tracer: OpenTelemetryTracer

    def all(self) -> list[ReadableSpan]:
        """Every span, in the order of their ends. No other can follow."""
        self.tracer._queue.close(60)  # noqa: SLF001 - the exporter is asked afterwards
        return list(self.exporter.get_finished_spans())


def installed(ratio: float) -> Iterator[Spans]:
    exporter = InMemorySpanExporter()
    tracer = OpenTelemetryTracer(exporter, "test", ratio)
    tracing.install(tracer)
    yield Spans(exporter, tracer)
    tracing.install(None)
    tracer.close()


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Everything is sampled."""
    yield from installed(1.0)


@pytest.fixture
def sampled_spans() -> Iterator[Spans]:
    """Only what continues a sampled trace."""
    yield from installed(0.0)
