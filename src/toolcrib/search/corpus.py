"""Inverted index over all tools, shared by every audience: word to tools and weights."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from anyio.lowlevel import checkpoint

from toolcrib.model import Tool, fingerprint
from toolcrib.names import fold
from toolcrib.search.tool_text import weighed

_NONE: Mapping[int, float] = MappingProxyType({})
_AT_ONCE = 100
MOST_WORDS = 20_000
"""Distinct words indexed per source, which bounds memory."""
_NAMING = 16
"""Words of each tool that are indexed beyond that limit; the first ones come from its name."""
_SPARE = 1_000
"""Stale definitions tolerated, beyond one per current tool, before the index is rebuilt."""


class Corpus:
    """Append-only: each new definition gets a permanent position in the index.

    An audience is a set of positions, so a hundred thousand audiences share one index.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._held: dict[str, dict[int, float]] = {}
        self._names: dict[str, list[int]] = {}
        self._known: dict[str, set[str]] = {}
        """Words indexed for each source."""
        self._sorted: list[str] = []
        self._sized: dict[tuple[str, int], list[str]] = {}
        self._whole: Mapping[str, Tool] = {}

    def __len__(self) -> int:
        return len(self._places)

    def renewed(self, tools: Mapping[str, Tool]) -> "Corpus":
        """Return the index to use for these tools: this one, or an empty one if most entries are stale."""
        return self if len(self) <= 2 * len(tools) + _SPARE else Corpus()

    async def read(self, tools: Mapping[str, Tool]) -> None:
        """Index a whole catalog in batches that yield to the event loop; a known mapping is skipped."""
        if tools is not self._whole:
            listed = tuple(tools.values())
            for start in range(0, len(listed), _AT_ONCE):
                self.places(listed[start : start + _AT_ONCE])
                await checkpoint()
            self._whole = tools

    def places(self, tools: Iterable[Tool]) -> list[int]:
        """Return the positions of some tools; new ones are indexed first."""
        places = self._places
        found: list[int] = []
        for tool in tools:
            key = (tool.fingerprint or fingerprint(tool), tool.exposed)
            place = places.get(key)
            if place is None:
                place = places[key] = len(places)
                self._read(tool, place)
            found.append(place)
        return found

    def having(self, word: str) -> Mapping[int, float]:
        """Return the positions of the tools that contain a word, with its weight in each."""
        return self._held.get(word, _NONE)

    def named(self, name: str) -> Sequence[int]:
        """Return the positions of the tools with this name, compared after folding."""
        return self._names.get(fold(name), ())

    def starting(self, beginning: str) -> Iterator[str]:
        """Yield the words with this prefix, in alphabetical order."""
        ordered = self._ordered()
        for place in range(bisect_left(ordered, beginning), len(ordered)):
            if not ordered[place].startswith(beginning):
                return
            yield ordered[place]

    def sized(self, beginning: str, lengths: Iterable[int]) -> Iterator[str]:
        """Yield the words that start with this letter and have one of these lengths."""
        self._ordered()
        return chain.from_iterable(self._sized.get((beginning, length), ()) for length in lengths)

    def _read(self, tool: Tool, place: int) -> None:
        held, known = self._held, self._known.setdefault(tool.source, set())
        for at, (word, weight) in enumerate(weighed(tool).items()):
            if word not in known:
                if len(known) >= MOST_WORDS and at >= _NAMING:
                    continue
                known.add(word)
            having = held.get(word)
            if having is None:
                held[word] = {place: weight}
            else:
                having[place] = weight
        for name in {fold(each) for each in (tool.name, tool.exposed, tool.local, *tool.aliases)}:
            self._names.setdefault(name, []).append(place)

    def _ordered(self) -> list[str]:
        if len(self._sorted) != len(self._held):
            self._sorted = sorted(self._held)
            self._sized = {}
            for word in self._sorted:
                self._sized.setdefault((word[0], len(word)), []).append(word)
        return self._sorted
