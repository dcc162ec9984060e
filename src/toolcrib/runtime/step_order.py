"""The step order: the middleware chain that every call passes between the gateway and its source."""

from collections.abc import Awaitable, Callable, Sequence

from toolcrib.catalog.catalog import Snapshot
from toolcrib.config import Document
from toolcrib.interfaces import ResultMemory, Shared, Step
from toolcrib.model import Call, Origin
from toolcrib.observe import CallRecorder
from toolcrib.policy.energy import AWAIT_ENERGY_TOOL
from toolcrib.steps.activate import Activate
from toolcrib.steps.announce import Announce
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.cache import Cache
from toolcrib.steps.deadline import Deadline
from toolcrib.steps.limit import Limit
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.steps.replay import Replay
from toolcrib.steps.retry import Retry
from toolcrib.steps.shape import Shape
from toolcrib.steps.spend import Spend
from toolcrib.steps.validate import Validate
from toolcrib.steps.verify import Verify
from toolcrib.supervisor import Supervisor


def forget_gone(steps: Sequence[Step], snapshot: Snapshot) -> None:
    """Drop the per-source state of steps for sources without tools, so that it cannot grow without bound."""
    there = {tool.source for tool in snapshot.tools.values()}
    for step in steps:
        if isinstance(step, Breaker | Retry | Bulkhead):
            step.retain(there)


def order(
    document: Document,
    journal: CallRecorder,
    shared: Shared,
    supervisor: Supervisor,
    breaker: Breaker,
    *,
    replay: Replay,
    ready: Callable[[Call], Awaitable[bool]],
    silent: Callable[[Call], bool],
    spend: Spend,
    large_results: ResultMemory | None = None,
    wants: Callable[[Origin], bool] | None = None,
) -> tuple[Step, ...]:
    """Return the steps every call passes, outermost first; a result passes them in reverse order."""
    limits = document.limits
    return (
        Record(journal, wants, journal.running, journal.begun),
        Recover(),
        Deadline(),
        Limit(shared, limits.per_user, limits.per_tool),
        Validate(),
        replay,
        Shape(limits.result_bytes, large_results),
        Cache(shared),
        spend,
        Announce(silent),
        Verify(),
        Retry(),
        breaker,
        Activate(supervisor.is_up, supervisor.wake, ready=ready, share=limits.share),
        Bulkhead(
            limits.concurrency, limits.waiting, own_slots=frozenset({AWAIT_ENERGY_TOOL}), share=limits.share
        ),
        replay.begin,
        Attempt(supervisor.timeout),
    )
