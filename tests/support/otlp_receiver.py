"""A receiver of OTLP over HTTP that keeps every span, and what a test asks of a span."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class ReceivedSpan:
    """One span, with its ids in hex. `links`: the traces that it is linked to."""

    process: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: Mapping[str, str | int]
    links: tuple[str, ...]


@dataclass
class OtlpReceiver:
    """What has arrived. `headers`: of the last request."""

    endpoint: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for of_process in ExportTraceServiceRequest.FromString(gzip.decompress(body)).resource_spans:
            process = next(
                each.value.string_value for each in of_process.resource.attributes if each.key == "service.name"
            )
            for scope in of_process.scope_spans:
                for span in scope.spans:
                    attributes = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
                    links = tuple(link.trace_id.hex() for link in span.links)
                    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                    self.spans.append(ReceivedSpan(process, span.name, *ids, attributes, links))


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Listen on a free port."""
    found = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.headers = {name.lower(): value for name, value in self.headers.items()}
            found.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
