"""An OTLP/HTTP collector of spans that can be made to refuse."""

import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


class Span(NamedTuple):
    """A span as it arrived, its ids in hex."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    failed: bool
    began: int
    ended: int
    attributes: Mapping[str, str | bool]
    resource: Mapping[str, str | bool]


class Request(NamedTuple):
    """One delivery."""

    path: str
    headers: Mapping[str, str]
    spans: tuple[Span, ...]


class Collector:
    """The endpoint and the received requests."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.requests: list[Request] = []

    @property
    def spans(self) -> list[Span]:
        return [span for request in self.requests for span in request.spans]


@contextmanager
def collecting() -> Generator[Collector]:
    """Run a collector until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if collector.status == 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append(Request(self.path, headers, _spans(body)))
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        collector.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _spans(body: bytes) -> tuple[Span, ...]:
    sent = ExportTraceServiceRequest.FromString(body)
    return tuple(
        Span(
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.kind,
            span.status.code == 2,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            _plain(span.attributes),
            _plain(group.resource.attributes),
        )
        for group in sent.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    )


def _plain(attributes: Iterable[KeyValue]) -> dict[str, str | bool]:
    return {
        each.key: each.value.bool_value if each.value.HasField("bool_value") else each.value.string_value
        for each in attributes
    }
