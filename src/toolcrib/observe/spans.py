"""Spans of calls: which are exported, and the thread that brings them to a collector, so no call waits."""

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

INSTALL = "pip install 'toolcrib[otel]'"
MOST_WAITING = 10_000
SPANS_AT_ONCE = 512
GRACE = 3.0
"""How long a slow collector may hold up the end of the process, in seconds."""

_CHANCES = 1 << 56
"""The last 56 bits of a trace id are random, by its standard; ours are too."""

_logger = logging.getLogger(__name__)


def installed() -> bool:
    """Whether the extra that exports spans is there."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True)
class Sampling:
    """Which calls become spans: `ratio` of the traces that begin here; of others, what their callers keep."""

    ratio: float = 1.0
    follow: bool = True
    """Whether a caller's own decision goes first."""

    def wants(self, origin: Origin) -> bool:
        """Decide about a call; every gateway in a trace decides alike, and so do others by the standard."""
        if self.follow and origin.parent:
            return origin.sampled
        return self.ratio >= 1.0 or _chance(origin.trace_id) >= (1.0 - self.ratio) * _CHANCES


class SpanExporter(Protocol):
    """The way to a collector. Used by one thread."""

    def send(self, batch: Sequence[CallEntry]) -> str | None:
        """Deliver a batch, however long it takes; return what went wrong, or None."""
        ...

    def close(self) -> None:
        """Give up what is being sent, and the connection."""
        ...


class Spans:
    """A sink with a bounded queue; what does not fit, or cannot be delivered, is counted."""

    name = "traces"

    def __init__(self, exporter: SpanExporter, sampling: Sampling, *, limit: int = MOST_WAITING) -> None:
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
        wants = self.sampling.wants
        chosen = [entry for entry in batch if wants(entry.origin)]
        if not chosen:
            return
        with self._change:
            room = 0 if self._ending else self._limit - len(self._waiting)
            self._waiting.extend(chosen[:room])
            self.dropped += max(len(chosen) - room, 0)
            self._start()
            self._change.notify_all()

    @property
    def choice(self) -> Callable[[Origin], bool] | None:
        """What decides about a call; None where the flags of every trace are right as they came."""
        settled = self.sampling.follow and self.sampling.ratio >= 1.0
        return None if settled else self.sampling.wants

    async def flush(self) -> None:
        """Nothing to wait for: the thread sends what was taken in."""

    async def aclose(self, timeout: float = GRACE) -> None:
        """Send what is left, for no longer than `timeout` seconds, and take no more."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self.close, timeout)

    def close(self, timeout: float = GRACE) -> None:
        """Do the same where there is no event loop."""
        with self._change:
            self._ending = True
            self._change.notify_all()
            self._change.wait_for(lambda: not (self._waiting or self._busy), timeout)
            self.dropped += len(self._waiting)
            self._waiting.clear()
        self._exporter.close()

    def _start(self) -> None:
        if self._thread is None and not self._ending:
            # A daemon: one that waits for a collector must not keep the process from ending.
            self._thread = Thread(target=self._run, name="toolcrib-traces", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while batch := self._next():
            failure = self._send(batch)
            with self._change:
                self._busy = False
                if failure is not None:
                    self.dropped += len(batch)
                self._change.notify_all()
            self._tell(failure)

    def _send(self, batch: Sequence[CallEntry]) -> str | None:
        try:
            return self._exporter.send(batch)
        except Exception as error:  # noqa: BLE001 - boundary: whatever the exporter raises, the next batch is tried
            return f"{type(error).__name__}: {error}"

    def _next(self) -> list[CallEntry]:
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._ending)
            batch = [self._waiting.popleft() for _ in range(min(SPANS_AT_ONCE, len(self._waiting)))]
            self._busy = bool(batch)
            return batch

    def _tell(self, failure: str | None) -> None:
        """Say once that spans are lost, and once that they no longer are."""
        if failure is not None and not self._failing:
            _logger.warning("Spans cannot be exported now; they are counted as dropped. Reason: %s", failure)
        elif failure is None and self._failing:
            _logger.info("Spans are exported again.")
        self._failing = failure is not None


def _chance(trace_id: str) -> int:
    try:
        return int(trace_id.replace("-", "")[-14:], 16)
    except ValueError:  # no trace that others know of
        return 0
