"""Tool sequences: which tools callers use after a tool; every caller has the same weight."""

from collections import Counter, OrderedDict
from collections.abc import Sequence

from toolcrib.interfaces import Followers
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

_Votes = OrderedDict[str, tuple[str, ...]]


class Sequences:
    """A sink that stores only votes. Each caller has one vote per tool, however often it calls.

    So one caller cannot promote a tool for all others by calling it a thousand times.
    """

    name = "sequences"
    dropped = 0

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str | None], tuple[str, float]] = OrderedDict()
        self._votes: OrderedDict[str, _Votes] = OrderedDict()
        self._followers: dict[str, Followers] = {}

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Count successful calls, in order."""
        for _, tool, caller, origin, problem, _, _, at, _, _, _ in batch:
            if problem is None:
                self._count_call((caller.id, origin.session_id), caller.id, tool.name, at)

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

    def _count_call(self, session: tuple[str, str | None], caller: str, tool: str, at: float) -> None:
        before = self._last.get(session)
        self._last[session] = (tool, at)
        if before is None:
            if len(self._last) > MAX_SEQUENCE_CALLERS:
                self._last.popitem(last=False)
        elif before[0] != tool and at - before[1] <= _MAX_GAP_SECONDS:
            self._vote(before[0], caller, tool)

    def _vote(self, tool: str, caller: str, following: str) -> None:
        voters = self._votes.get(tool)
        if voters is None:
            voters = self._votes[tool] = OrderedDict()
            if len(self._votes) > MAX_SEQUENCE_TOOLS:
                oldest, _ = self._votes.popitem(last=False)
                self._followers.pop(oldest, None)
        # A tuple: a deque takes 600 bytes, for every caller of every tool, also of those long removed.
        voters[caller] = (*voters.get(caller, ()), following)[-_VOTES_PER_CALLER:]
        voters.move_to_end(caller)
        if len(voters) > _VOTERS_PER_TOOL:
            voters.popitem(last=False)
        self._followers.pop(tool, None)


def _most_voted(voters: _Votes | None) -> Followers:
    if not voters:
        return ()
    votes: Counter[str] = Counter()
    for steps in voters.values():
        for name in steps:
            votes[name] += 1 / len(steps)  # pyright: ignore[reportArgumentType]
    # Rounded to tenths, so that hints cached from it are not invalidated by every call.
    shares = ((name, round(votes[name] / len(voters), 1)) for name in votes)
    return tuple(
        sorted((share for share in shares if share[1] > 0), key=lambda share: (-share[1], share[0]))
    )[:_MAX_FOLLOWERS]
