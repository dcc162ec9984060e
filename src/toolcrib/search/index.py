"""Search for one audience: its own tools, ranked by BM25 over the shared index."""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import islice
from math import log

from toolcrib.model import Tool
from toolcrib.search.corpus import Corpus
from toolcrib.search.words import STOPS, stem, words

EXACT = 100.0
"""Score added to a tool if the query is exactly its name."""

# Bounds of one query: characters, terms, similar words merged into a term, unknown words corrected.
_MOST_TEXT = 4_000
_MOST_WORDS = 16
_MOST_ALIKE = 32
_MOST_MISSPELT = 8
_SHORTEST_BEGUN, _SHORTEST_MISSPELT = 2, 4
_BEGUN, _MISSPELT = 0.4, 0.6
"""Weight of a prefix match and of a misspelled match, relative to the exact word."""
_FEW, _PART = 50, 8
"""A word in more than 50 tools and more than an eighth of all selects no tool: it only affects ranking."""
_MOST_OF = 2
"""A word in more than half of all tools is ignored."""
_MOST_KNOWN = 4_096
_TIE = -1e-10
"""Score per list position: breaks ties in favour of the earlier tool."""

_NEARLY = 1e-4
"""Upper bound of the difference between two scores that round to the same value."""

_Asked = tuple[int, Mapping[int, float], float]
"""A query term: its document frequency in this audience, its weight per tool position, its factor."""
_NOBODY: _Asked = (0, {}, 0.0)


class Index:
    """A searchable set of tools. Those that `corpus` lacks are indexed when it is created."""

    def __init__(self, tools: Iterable[Tool], corpus: Corpus | None = None) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._tools = tuple(tools)
        self._orders = {place: order for order, place in enumerate(self._corpus.places(self._tools))}
        self._many = max(_FEW, len(self._tools) // _PART)
        self._known: dict[str, int] = {}

    def find(self, query: str, limit: int | None = None) -> tuple[Tool, ...]:
        """Return the tools that match any selective word, best first; all of them if the query is blank."""
        if not query.strip():
            return self._tools[:limit]
        scores = self._scores(query)
        return tuple([self._at(place) for place in _best(scores, limit)])

    def rank(self, query: str, limit: int | None = None) -> dict[str, float]:
        """Return the scores of the matching tools by canonical name, best first."""
        scores = self._scores(query)
        return {self._at(place).name: round(scores[place], 4) for place in _best(scores, limit)}

    def fit(self, query: str, most: int) -> dict[str, float]:
        """Return the scores of the `most` best tools, and of all that tie with the last of them.

        They are unordered: breaking ties is left to the caller.
        """
        scores = self._scores(query)
        least = round(min(nlargest(most, scores.values()), default=0.0), 4)
        rounded = ((place, round(score, 4)) for place, score in scores.items() if score > least - _NEARLY)
        return {self._at(place).name: score for place, score in rounded if score >= least}

    def _at(self, place: int) -> Tool:
        return self._tools[self._orders[place]]

    def _scores(self, query: str) -> dict[int, float]:
        # The end of a long text: its latest words matter most.
        scores = self._by_words(query[-_MOST_TEXT:])
        for place in self._corpus.named(query.strip()):
            order = self._orders.get(place)
            if order is not None:
                scores[place] = scores.get(place, order * _TIE) + EXACT
        return scores

    def _by_words(self, query: str) -> dict[int, float]:
        asked = self._asked(query)
        # If every word is common, the rarest one selects.
        chosen = [each for each in asked if each[0] <= self._many] or asked[:1]
        scores: dict[int, float] = {}
        for count, held, worth in chosen:
            self._choose(scores, held, worth * self._telling(count))
        for count, held, worth in asked[len(chosen) :]:
            if count <= len(self._tools) // _MOST_OF:
                _rank(scores, held, worth * self._telling(count))
        return scores

    def _asked(self, query: str) -> list[_Asked]:
        """Return the query terms that match anything, rarest first."""
        said = words(query)
        told = [word for word in said if word not in STOPS] or said
        stems = list(dict.fromkeys(map(stem, told)))
        asked = [(self._count(each), self._corpus.having(each), 1.0) for each in stems]
        unknown = [each for each, known in zip(stems, asked, strict=True) if not known[0]]
        # Only the last unknown words: a long conversation usually repeats the earlier ones in other words.
        asked += map(self._misspelt, unknown[-_MOST_MISSPELT:])
        if told and told[-1] == said[-1] and query[-1].isalnum():
            asked.append(self._begun(told[-1]))
        return sorted((each for each in asked if each[0]), key=_count)[:_MOST_WORDS]

    def _begun(self, word: str) -> _Asked:
        """Return the words that have this prefix, as the last word of a query may be incomplete.

        A common word counts as complete: its extensions are rarer and would select instead of it.
        """
        whole = stem(word)
        if len(word) < _SHORTEST_BEGUN or self._count(whole) > self._many:
            return _NOBODY
        return self._together((each for each in self._corpus.starting(word) if each != whole), _BEGUN)

    def _misspelt(self, word: str) -> _Asked:
        """Return the indexed words within one edit of a word that no tool contains."""
        if len(word) < _SHORTEST_MISSPELT or not (word.isascii() and word.isalpha()):
            return _NOBODY
        alike = self._corpus.sized(word[0], range(len(word) - 1, len(word) + 2))
        return self._together((each for each in alike if _one_slip(word, each)), _MISSPELT)

    def _together(self, alike: Iterable[str], worth: float) -> _Asked:
        """Merge several words into one term with a reduced factor."""
        known = list(islice((each for each in alike if self._count(each)), _MOST_ALIKE))
        if len(known) == 1:
            return self._count(known[0]), self._corpus.having(known[0]), worth
        united: dict[int, float] = {}
        for word in known:
            for place, weight in self._corpus.having(word).items():
                if place in self._orders:
                    united[place] = max(united.get(place, 0.0), weight)
            if len(united) > len(self._orders) // _MOST_OF:
                break
        return len(united), united, worth

    def _count(self, word: str) -> int:
        """Return a word's document frequency in this audience only: other tools must not affect scores."""
        count = self._known.get(word)
        if count is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            count = self._known[word] = len(self._corpus.having(word).keys() & self._orders.keys())
        return count

    def _telling(self, count: int) -> float:
        """Return the inverse document frequency (BM25) of a word that occurs in `count` tools."""
        return log(1 + (len(self._tools) - count + 0.5) / (count + 0.5))

    def _choose(self, scores: dict[int, float], held: Mapping[int, float], telling: float) -> None:
        orders, known = self._orders.get, scores.get
        for place, weight in held.items():
            order = orders(place)
            if order is not None:
                scores[place] = known(place, order * _TIE) + weight * telling


def _rank(scores: dict[int, float], held: Mapping[int, float], telling: float) -> None:
    weights = held.get
    for place in scores:
        weight = weights(place)
        if weight is not None:
            scores[place] += weight * telling


def _one_slip(word: str, other: str) -> bool:
    """Return whether two words are one insertion, deletion, substitution or transposition apart."""
    if abs(len(word) - len(other)) > 1:
        return False
    start = 0
    for here, there in zip(word, other, strict=False):
        if here != there:
            break
        start += 1
    rest, left = word[start:], other[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return rest[1:] == left[1:] or rest[1:] == left or rest == left[1:] or swapped == left


def _best(scores: dict[int, float], limit: int | None) -> list[int]:
    # Sort plain integers: thousands of tuples would trigger the garbage collector.
    if limit is not None and limit < len(scores):
        return nlargest(limit, scores, key=scores.__getitem__)
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _count(asked: _Asked) -> int:
    return asked[0]
