"""Tool sequences: which tools callers use after a tool, and where the arguments of those calls come from."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from toolcrib.interfaces import ArgumentSource, Followers, LearnedStep
from toolcrib.observe.argument_sources import CallValues, Fingerprint, fingerprint, sources_of
from toolcrib.observe.call_entry import CallEntry

MAX_SEQUENCE_TOOLS = 2_000
MAX_SEQUENCE_CALLERS = 4_096
_VOTERS_PER_TOOL = 64
"""Maximum callers counted per tool; the most recent ones count."""
_VOTES_PER_CALLER = 8
"""Number of a caller's latest follow-up calls that count per tool."""
_MAX_GAP_SECONDS = 600.0
"""Maximum seconds between two calls of one sequence; a later call starts a new one."""
_MAX_FOLLOWERS = 3
_MAX_FINGERPRINTS = 1_024
"""Sessions whose last call is remembered with its values, as hashes."""
_MAX_DISTINCT_SOURCES = 8_192
_MIN_OWN_CALLS = 2
"""Times that a caller must have made a call itself, before it is suggested from its own sequence alone."""

_Session = tuple[str, str | None]
_Sources = tuple[ArgumentSource, ...]
_Step = tuple[str, _Sources]
_Kind = TypeVar("_Kind")
_Votes = OrderedDict[str, tuple[_Step, ...]]
_NO_VALUES: Mapping[str, CallValues] = {}


class _LastCall(NamedTuple):
    tool: str
    at: float
    values: CallValues | Fingerprint | None
    """Hashes of its values; the values themselves only while its batch is processed."""


def _hashed(values: CallValues | Fingerprint | None) -> Fingerprint | None:
    return fingerprint(values) if isinstance(values, CallValues) else values


class Sequences:
    """A sink that stores only votes. Each caller has one vote per tool, however often it calls.

    So one caller cannot promote a tool for all others by calling it a thousand times. A vote has names and
    paths, never a value: hashes of the values of a session's last call are dropped with the next call.
    """

    name = "sequences"
    dropped = 0

    def __init__(self) -> None:
        self._last: OrderedDict[_Session, _LastCall] = OrderedDict()
        self._votes: OrderedDict[str, _Votes] = OrderedDict()
        self._followers: dict[str, Followers] = {}
        self._steps: dict[str, dict[str, tuple[LearnedStep, ...]]] = {}
        self._values = _NO_VALUES
        self._sources: dict[_Sources, _Sources] = {}
        """Each distinct mapping once: thousands of votes share a few."""

    def note_values(self, values: Mapping[str, CallValues]) -> None:
        """Receive arguments and data of the calls in the next batch, by call id."""
        self._values = values

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Count successful calls, in order."""
        sessions: set[_Session] = set()
        for call_id, tool, caller, origin, problem, _, _, at, _, _, _ in batch:
            if problem is None:
                session = (caller.id, origin.session_id)
                sessions.add(session)
                self._count_call(session, tool.name, at, self._values.get(call_id))
        self._values = _NO_VALUES
        # Values are hashed once per session and batch, or where another tool follows: not for every call.
        for session in sessions:
            last = self._last.get(session)
            if last is not None:
                self._last[session] = last._replace(values=_hashed(last.values))
        if batch:
            self._forget_values(batch[-1].at)

    async def flush(self) -> None:
        """Do nothing: sequences are not persisted."""

    def followers(self, tool: str) -> Followers:
        """Return the tools that most often follow this one."""
        found = self._followers.get(tool)
        if found is None:
            if len(self._followers) >= MAX_SEQUENCE_TOOLS:
                self._followers.clear()
            found = self._followers[tool] = _most_voted(self._votes.get(tool))
        return found

    def steps(self, tool: str, caller: str) -> tuple[LearnedStep, ...]:
        """Return the calls that follow a tool with values of its result, those of this caller marked."""
        voters = self._votes.get(tool)
        if voters is None:
            return ()
        by_caller = self._steps.setdefault(tool, {})
        # Callers without a vote here share one entry.
        key = caller if caller in voters else ""
        found = by_caller.get(key)
        if found is None:
            found = by_caller[key] = _steps_for(voters, key)
        return found

    def _count_call(self, session: _Session, tool: str, at: float, values: CallValues | None) -> None:
        before = self._last.pop(session, None)
        self._last[session] = _LastCall(tool, at, values)
        if before is None:
            if len(self._last) > MAX_SEQUENCE_CALLERS:
                self._last.popitem(last=False)
        elif before.tool != tool and at - before.at <= _MAX_GAP_SECONDS:
            sources: _Sources = ()
            known = _hashed(before.values)
            if values is not None and known is not None:
                sources = self._shared(sources_of(values.arguments, known))
            self._vote(before.tool, session[0], (tool, sources))

    def _vote(self, tool: str, caller: str, following: _Step) -> None:
        voters = self._votes.get(tool)
        if voters is None:
            voters = self._votes[tool] = OrderedDict()
            if len(self._votes) > MAX_SEQUENCE_TOOLS:
                self._invalidate(self._votes.popitem(last=False)[0])
        # A tuple: a deque takes 600 bytes, for every caller of every tool, also of those long removed.
        voters[caller] = (*voters.get(caller, ()), following)[-_VOTES_PER_CALLER:]
        voters.move_to_end(caller)
        if len(voters) > _VOTERS_PER_TOOL:
            voters.popitem(last=False)
        self._invalidate(tool)

    def _invalidate(self, tool: str) -> None:
        self._followers.pop(tool, None)
        self._steps.pop(tool, None)

    def _shared(self, sources: _Sources) -> _Sources:
        if len(self._sources) >= _MAX_DISTINCT_SOURCES:
            self._sources.clear()
        return self._sources.setdefault(sources, sources)

    def _forget_values(self, now: float) -> None:
        """Drop the hashes of calls that are too old or too many; the least recent come first."""
        excess = len(self._last) - _MAX_FINGERPRINTS
        for place, (session, last) in enumerate(self._last.items()):
            if place >= excess and now - last.at <= _MAX_GAP_SECONDS:
                return
            if last.values is not None:
                self._last[session] = last._replace(values=None)


def _most_voted(voters: _Votes | None) -> Followers:
    if not voters:
        return ()
    shares = _shares(voters, lambda step: step[0])
    return tuple(
        sorted((share for share in shares if share[1] > 0), key=lambda share: (-share[1], share[0]))
    )[:_MAX_FOLLOWERS]


def _steps_for(voters: _Votes, caller: str) -> tuple[LearnedStep, ...]:
    """Return the steps of all callers, and those that this caller repeats."""
    own_steps = voters.get(caller, ())
    found = [
        LearnedStep(tool, round(count / len(own_steps), 1), sources, own=True)
        for (tool, sources), count in Counter(own_steps).items()
        if sources and count >= _MIN_OWN_CALLS
    ]
    own = {(each.tool, each.sources) for each in found}
    found += [
        LearnedStep(step[0], share, step[1])
        for step, share in _shares(voters, lambda step: step)
        if step[1] and share > 0 and step not in own
    ]
    return tuple(sorted(found, key=lambda each: (-each.share, not each.own, each.tool)))[:_MAX_FOLLOWERS]


def _shares(voters: _Votes, kind: Callable[[_Step], _Kind]) -> Iterator[tuple[_Kind, float]]:
    """Yield each kind of step with its share, of which every caller has the same part."""
    votes: Counter[_Kind] = Counter()
    for steps in voters.values():
        for step in steps:
            votes[kind(step)] += 1 / len(steps)  # pyright: ignore[reportArgumentType]
    # Rounded to tenths, so that hints cached from it are not invalidated by every call.
    yield from ((each, round(count / len(voters), 1)) for each, count in votes.items())
