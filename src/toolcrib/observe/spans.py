"""Spans of calls: samples them and exports them from a thread, so that no call waits for the collector."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Condition, Thread
from typing import Protocol

from anyio import CancelScope, to_thread

from toolcrib.model import Origin
from toolcrib.observe.call_entry import CallEntry

INSTALL_COMMAND = "pip install 'toolcrib[otel]'"
MAX_QUEUED_SPANS = 10_000
SPANS_PER_EXPORT = 512
EXPORT_SHUTDOWN_SECONDS = 3.0
"""Maximum seconds a slow collector may delay the shutdown."""

_RANDOM_RANGE = 1 << 56
"""W3C Trace Context level 2: the last 56 bits of a trace id are random; those of our ids are too."""

_logger = logging.getLogger(__name__)


def installed() -> bool:
    """Whether the optional dependency for span export is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True)
class Sampling:
    """Sampling: `ratio` of the traces that start here; other traces follow the caller's sampled flag."""

    ratio: float = 1.0
    follow: bool = True
    """Whether the caller's sampled flag takes precedence over `ratio`."""

    def samples(self, origin: Origin) -> bool:
        """Whether to export a call; consistent among services that sample by the trace id's random bits."""
        if self.follow and origin.parent:
            return origin.sampled
        return self.ratio >= 1.0 or _random_part(origin.trace_id) >= (1.0 - self.ratio) * _RANDOM_RANGE


class SpanExporter(Protocol):
    """Sends spans to a collector. Used by one thread."""

    def send(self, batch: Sequence[CallEntry]) -> str | None:
        """Deliver a batch, blocking; return the reason of a failure, or None."""
        ...

    def close(self) -> None:
        """Abort the export in progress and close the connection."""
        ...


class Spans:
    """A sink with a bounded queue; spans that overflow it or cannot be delivered are counted."""

    name = "traces"

    def __init__(self, exporter: SpanExporter, sampling: Sampling, *, limit: int = MAX_QUEUED_SPANS) -> None:
        self.dropped = 0
        self.sampling = sampling
        self._exporter = exporter
        self._limit = limit
        self._change = Condition()
        self._waiting: deque[CallEntry] = deque()
        self._busy = False
        self._ending = False
        self._failing = False
        self._thread: Thread | None = None

    def take(self, batch: Sequence[CallEntry]) -> None:
        samples = self.sampling.samples
        chosen = [entry for entry in batch if samples(entry.origin)]
        if not chosen:
            return
        with self._change:
            free = 0 if self._ending else self._limit - len(self._waiting)
            self._waiting.extend(chosen[:free])
            self.dropped += max(len(chosen) - free, 0)
            self._start()
            self._change.notify_all()

    @property
    def sampler(self) -> Callable[[Origin], bool] | None:
        """The sampling decision per call; None if the incoming flags of every trace stay valid."""
        settled = self.sampling.follow and self.sampling.ratio >= 1.0
        return None if settled else self.sampling.samples

    async def flush(self) -> None:
        """Do nothing: the thread exports the queue."""

    async def aclose(self, timeout: float = EXPORT_SHUTDOWN_SECONDS) -> None:
        """Export the queued spans, for at most `timeout` seconds, and accept no more."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self.close, timeout)

    def close(self, timeout: float = EXPORT_SHUTDOWN_SECONDS) -> None:
        """Do the same without an event loop, blocking."""
        with self._change:
            self._ending = True
            self._change.notify_all()
            self._change.wait_for(lambda: not (self._waiting or self._busy), timeout)
            self.dropped += len(self._waiting)
            self._waiting.clear()
        self._exporter.close()

    def _start(self) -> None:
        if self._thread is None and not self._ending:
            # A daemon: a thread that waits for a collector must not prevent the process from exiting.
            self._thread = Thread(target=self._run, name="toolcrib-traces", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while batch := self._next_batch():
            failure = self._send(batch)
            with self._change:
                self._busy = False
                if failure is not None:
                    self.dropped += len(batch)
                self._change.notify_all()
            self._log_change(failure)

    def _send(self, batch: Sequence[CallEntry]) -> str | None:
        try:
            return self._exporter.send(batch)
        except Exception as error:  # noqa: BLE001 - boundary: whatever the exporter raises, the next batch is tried
            return f"{type(error).__name__}: {error}"

    def _next_batch(self) -> list[CallEntry]:
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._ending)
            batch = [self._waiting.popleft() for _ in range(min(SPANS_PER_EXPORT, len(self._waiting)))]
            self._busy = bool(batch)
            return batch

    def _log_change(self, failure: str | None) -> None:
        """Log once when spans start to be lost, and once when exports succeed again."""
        if failure is not None and not self._failing:
            _logger.warning("Spans cannot be exported now; they are counted as dropped. Reason: %s", failure)
        elif failure is None and self._failing:
            _logger.info("Spans are exported again.")
        self._failing = failure is not None


def _random_part(trace_id: str) -> int:
    try:
        return int(trace_id.replace("-", "")[-14:], 16)
    except ValueError:  # not a hexadecimal id, so no trace of another service
        return 0
