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
        self._told: dict[str, Followers] = {}

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Count successful calls, in order."""
        for _, tool, caller, origin, problem, _, _, at, _, _, _ in batch:
            if problem is None:
                self._note((caller.id, origin.session_id), caller.id, tool.name, at)

    async def flush(self) -> None:
        """Do nothing: sequences are not persisted."""

    def followers(self, tool: str) -> Followers:
        """Return the tools that most often follow this one."""
        told = self._told.get(tool)
        if told is None:
            if len(self._told) >= MAX_SEQUENCE_TOOLS:
                self._told.clear()
            told = self._told[tool] = _most_voted(self._votes.get(tool))
        return told

    def _note(self, who: tuple[str, str | None], caller: str, tool: str, at: float) -> None:
        before = self._last.get(who)
        self._last[who] = (tool, at)
        if before is None:
            if len(self._last) > MAX_SEQUENCE_CALLERS:
                self._last.popitem(last=False)
        elif before[0] != tool and at - before[1] <= _MAX_GAP_SECONDS:
            self._vote(before[0], caller, tool)

    def _vote(self, tool: str, caller: str, following: str) -> None:
        voices = self._votes.get(tool)
        if voices is None:
            voices = self._votes[tool] = OrderedDict()
            if len(self._votes) > MAX_SEQUENCE_TOOLS:
                gone, _ = self._votes.popitem(last=False)
                self._told.pop(gone, None)
        # A tuple: a deque takes 600 bytes, for every caller of every tool, also of those long removed.
        voices[caller] = (*voices.get(caller, ()), following)[-_VOTES_PER_CALLER:]
        voices.move_to_end(caller)
        if len(voices) > _VOTERS_PER_TOOL:
            voices.popitem(last=False)
        self._told.pop(tool, None)


def _most_voted(voices: _Votes | None) -> Followers:
    if not voices:
        return ()
    votes: Counter[str] = Counter()
    for steps in voices.values():
        for name in steps:
            votes[name] += 1 / len(steps)  # pyright: ignore[reportArgumentType]
    # Rounded to tenths, so that hints cached from it are not invalidated by every call.
    shares = ((name, round(votes[name] / len(voices), 1)) for name in votes)
    return tuple(sorted((each for each in shares if each[1] > 0), key=lambda each: (-each[1], each[0])))[
        :_MAX_FOLLOWERS
    ]
