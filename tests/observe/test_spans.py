"""Span export in a thread: sampled by trace, bounded, drops are counted."""

import logging
import threading
from collections.abc import Sequence

import pytest

from tests.observe.samples import an_entry
from tests.waiting import until
from toolcrib.model import Origin
from toolcrib.observe import CallEntry, Sampling, Sink, Spans, new_id
from toolcrib.observe.spans import SPANS_PER_EXPORT

pytestmark = pytest.mark.anyio

PARENT = "00f067aa0ba902b7"
ALL = Sampling()


class Post:
    """Receives spans; can be made to fail or block."""

    def __init__(self) -> None:
        self.batches: list[Sequence[CallEntry]] = []
        self.failure: str | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.asked = 0
        self.closed = False

    def send(self, batch: Sequence[CallEntry]) -> str | None:
        self.asked += 1
        self.gate.wait()
        if self.failure == "raise":
            raise RuntimeError("out of stamps")
        self.batches.append(batch)
        return self.failure

    def close(self) -> None:
        self.closed = True
        self.gate.set()

    @property
    def count(self) -> int:
        return sum(map(len, self.batches))


def entries(count: int) -> list[CallEntry]:
    return [an_entry(id=new_id(), origin=Origin(trace_id=new_id())) for _ in range(count)]


@pytest.mark.parametrize(
    "sampling, origin, wanted",
    [
        (ALL, Origin(trace_id=new_id()), True),
        (ALL, Origin(trace_id=new_id(), parent=PARENT), True),
        (ALL, Origin(trace_id=new_id(), parent=PARENT, sampled=False), False),
        (Sampling(1.0, follow=False), Origin(trace_id=new_id(), parent=PARENT, sampled=False), True),
        (Sampling(0.0), Origin(trace_id=new_id()), False),
        (Sampling(0.0), Origin(trace_id=new_id(), parent=PARENT), True),
        (Sampling(0.0, follow=False), Origin(trace_id=new_id(), parent=PARENT), False),
        (Sampling(0.5), Origin(trace_id="4bf92f35-77b3-4da6-a3ce-929d0e0e4736"), True),
        (Sampling(0.5), Origin(trace_id="4bf92f35-77b3-4da6-a37e-929d0e0e4736"), False),
        (Sampling(0.5), Origin(trace_id="nobody's"), False),
    ],
)
def test_sampling_follows_caller_then_ratio(sampling: Sampling, origin: Origin, wanted: bool) -> None:
    assert sampling.samples(origin) is wanted


def test_generated_ids_meet_the_ratio() -> None:
    kept = sum(Sampling(0.25).samples(Origin(trace_id=new_id())) for _ in range(20_000))
    assert 4_600 < kept < 5_400  # six standard deviations


def test_sampling_is_reported_only_if_configured() -> None:
    assert Spans(Post(), ALL).sampler is None
    assert Spans(Post(), Sampling(0.5)).sampler is not None
    assert Spans(Post(), Sampling(1.0, follow=False)).sampler is not None


async def test_sampled_spans_arrive_in_ordered_batches() -> None:
    post = Post()
    spans: Sink = Spans(post, ALL)
    many = entries(2 * SPANS_PER_EXPORT + 1)
    unwanted = an_entry(origin=Origin(trace_id=new_id(), parent=PARENT, sampled=False))
    post.gate.clear()
    spans.take([unwanted])
    spans.take([*many[:700], unwanted, *many[700:]])
    await spans.flush()
    post.gate.set()
    assert isinstance(spans, Spans)
    await spans.aclose()
    assert [entry for batch in post.batches for entry in batch] == many
    assert max(map(len, post.batches)) <= SPANS_PER_EXPORT
    assert (spans.dropped, post.closed) == (0, True)


async def test_dropped_spans_are_counted() -> None:
    post = Post()
    spans = Spans(post, ALL, limit=10)
    post.gate.clear()
    spans.take(entries(1))
    spans.take(entries(25))
    assert spans.dropped >= 15
    post.gate.set()
    spans.close()
    assert post.count + spans.dropped == 26


async def test_shutdown_does_not_wait_for_a_hanging_collector() -> None:
    post = Post()
    spans = Spans(post, ALL)
    post.gate.clear()
    spans.take(entries(1))
    await until(lambda: post.asked == 1)
    spans.take(entries(2))
    spans.close(timeout=0.01)
    assert (post.closed, spans.dropped) == (True, 2)
    spans.take(entries(3))
    assert spans.dropped == 5
    Spans(Post(), ALL).close()


@pytest.mark.parametrize(
    "failure, reason", [("refused", "refused"), ("raise", "RuntimeError: out of stamps")]
)
async def test_collector_failure_is_logged_once(
    failure: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolcrib")
    post = Post()
    spans = Spans(post, ALL)
    post.failure = failure
    for lost in (1, 2):
        spans.take(entries(1))
        await until(lambda lost=lost: spans.dropped == lost)
    post.failure = None
    spans.take(entries(1))
    spans.close()
    await until(lambda: len(caplog.records) == 2)
    assert (post.batches[-1], spans.dropped) == (post.batches[-1], 2)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert caplog.messages[0].endswith(f"Reason: {reason}")
