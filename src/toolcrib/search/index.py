"""Lexical index (BM25) over the catalog."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import chain, islice
from math import log
from types import MappingProxyType
from typing import Any, cast
from unicodedata import category, normalize

from anyio.lowlevel import checkpoint

from toolcrib.apps.properties import every_phrase
from toolcrib.model import JsonObject, Tool, fingerprint
from toolcrib.names import fold

# --- Tokenizer and stemmer: normalizes case, accents and English suffixes ---

_ASCII_TOKENS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
"""Tokens of ASCII text: `readFile`, `read_file` and `READ-File` are two, `IDs` and `mp3` one."""
_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNICODE_TOKENS = re.compile(r"[^\W_]+")
_UNSPACED_SCRIPTS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""

_MIN_FOLDED_CHARS = 64
_OFTEN = (
    "a an and any are as at be by can could do does for from has have how i if in into is it its me my"
    " not of on or our please so some such that the their them then there these this those to us want was"
    " we what when where which who will with would you your"
)
STOP_WORDS = frozenset(_OFTEN.split())
"""English stop words."""


def words(text: str) -> Sequence[str]:
    """Return the tokens of a text, case-folded but not stemmed."""
    if text.isascii():
        return [word.lower() for word in _ASCII_TOKENS.findall(text)]
    found = _UNICODE_TOKENS.findall(_folded(_CASE_BOUNDARY.sub(" ", text)))
    return [part for word in found for part in ((word,) if word.isascii() else _bigrams(word))]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Strip English suffixes, so that `searches` and `searching` become `search`."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        left = word.removesuffix(ending)
        if left != word and len(left) > 2 and _has_vowel(left) and not word.endswith("eed"):
            word = _undoubled(left)
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def content_stem(word: str) -> str:
    """Return the stem of a word; empty for a stop word."""
    return "" if word in STOP_WORDS else stem(word)


def _folded(text: str) -> str:
    """Fold case and strip combining marks, vowel signs included: index and query are treated alike."""
    # Some characters decompose to whole phrases. Korean syllables, the longest ordinary case, take three.
    apart = normalize("NFKD", text.casefold())[: 4 * len(text) + _MIN_FOLDED_CHARS]
    return normalize("NFC", "".join(each for each in apart if category(each)[0] != "M")).casefold()


def _bigrams(word: str) -> Iterator[str]:
    """Split runs of unspaced scripts into character bigrams, as their word boundaries are unknown."""
    place = 0
    for run in _UNSPACED_SCRIPTS.finditer(word):
        if run.start() > place:
            yield word[place : run.start()]
        place, text = run.end(), run.group()
        yield from (text[at : at + 2] for at in range(len(text) - 1)) if len(text) > 1 else (text,)
    if place < len(word):
        yield word[place:]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _undoubled(word: str) -> str:
    double = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if double else word


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiouy" for letter in word)


# --- Extracts the weighted words of a tool definition; the field a word occurs in sets its weight ---

(
    NAME_WEIGHT,
    TITLE_WEIGHT,
    TAG_WEIGHT,
    SOURCE_WEIGHT,
    PARAMETER_WEIGHT,
    DESCRIPTION_WEIGHT,
    PARAMETER_TEXT_WEIGHT,
) = 4.0, 3.0, 2.5, 2.0, 1.2, 1.0, 0.5
"""Weight of a word in each field; `MARK` is for tags and activation phrases."""

_MAX_FIELD_CHARS = 4_000
_MAX_PARAMETERS = 64
_MAX_SCHEMA_DEPTH = 3
_MAX_TOOL_WORDS = 512
_K1, _LENGTH_NORMALIZATION, _AVERAGE_WORDS = 1.2, 0.5, 40.0
"""BM25 parameters: term frequency saturation (k1), length normalization (b), average length in words.

The average length is a constant, not the mean of a catalog. So a score reveals nothing about tools its reader
may not see, and it is calculated once for all audiences.
"""


def term_weights(tool: Tool) -> dict[str, float]:
    """Return the words of a tool with their BM25 term weights."""
    counts: dict[str, float] = {}
    before = counts.get
    for weight, text in _short_fields(tool):
        for word in map(stem, words(text[:_MAX_FIELD_CHARS])):
            counts[word] = before(word, 0.0) + weight
    length = 0
    for weight, text in _long_fields(tool):
        said = words(text[:_MAX_FIELD_CHARS])
        length += len(said)
        for word in map(content_stem, said):
            counts[word] = before(word, 0.0) + weight
    counts.pop("", None)
    short = _K1 * (1 - _LENGTH_NORMALIZATION + _LENGTH_NORMALIZATION * length / _AVERAGE_WORDS)
    # Words of the name fields come first, so that the cut drops words of the description.
    some = islice(counts.items(), _MAX_TOOL_WORDS)
    return {word: count * (_K1 + 1) / (count + short) for word, count in some}


def _short_fields(tool: Tool) -> Iterator[tuple[float, str]]:
    """Yield the short fields: names, title, tags, source, category."""
    yield NAME_WEIGHT, tool.local
    joined = "".join(words(tool.local))
    if joined != tool.local:
        yield NAME_WEIGHT, joined
    if tool.expose_as:
        yield NAME_WEIGHT, tool.expose_as
    if tool.title:
        yield TITLE_WEIGHT, tool.title
    yield TAG_WEIGHT, " ".join((*tool.tags, *every_phrase(tool.extensions)))
    yield SOURCE_WEIGHT, " ".join((tool.source, *tool.aliases))
    yield PARAMETER_WEIGHT, f"{tool.category} {tool.extensions.get('category', '')}"


def _long_fields(tool: Tool) -> Iterator[tuple[float, str]]:
    """Yield the long fields, to which length normalization applies."""
    yield DESCRIPTION_WEIGHT, tool.description
    found = _parameters(tool.input_schema)
    yield PARAMETER_WEIGHT, " ".join(name for name, _ in found)
    yield PARAMETER_TEXT_WEIGHT, " ".join(description for _, description in found if description)


def _parameters(schema: JsonObject) -> list[tuple[str, str]]:
    """Return names and descriptions of parameters, including those of nested objects and arrays."""
    found: list[tuple[str, str]] = []
    level: list[Any] = [schema]
    for _ in range(_MAX_SCHEMA_DEPTH):
        within: list[Any] = []
        for each in level:
            for name, about in _properties(each):
                found.append((name, str(about.get("description", ""))))
                within += (part for part in (about, about.get("items")) if part and "properties" in part)
                if len(found) >= _MAX_PARAMETERS:
                    return found
        level = within
    return found


def _properties(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    given = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    if isinstance(given, Mapping):
        for name, about in cast("Mapping[str, Any]", given).items():
            yield str(name), cast("Mapping[str, Any]", about) if isinstance(about, Mapping) else {}


# --- Inverted index over all tools, shared by every audience: word to tools and weights ---

_NO_POSTINGS: Mapping[int, float] = MappingProxyType({})
_BATCH_TOOLS = 100
MAX_WORDS_PER_SOURCE = 20_000
"""Distinct words indexed per source, which bounds memory."""
_ALWAYS_INDEXED_WORDS = 16
"""Words of each tool that are indexed beyond that limit; the first ones come from its name."""
_MAX_STALE_TOOLS = 1_000
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
        return self if len(self) <= 2 * len(tools) + _MAX_STALE_TOOLS else Corpus()

    async def read(self, tools: Mapping[str, Tool]) -> None:
        """Index a whole catalog in batches that yield to the event loop; a known mapping is skipped."""
        if tools is not self._whole:
            listed = tuple(tools.values())
            for start in range(0, len(listed), _BATCH_TOOLS):
                self.places(listed[start : start + _BATCH_TOOLS])
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
        return self._held.get(word, _NO_POSTINGS)

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
        for at, (word, weight) in enumerate(term_weights(tool).items()):
            if word not in known:
                if len(known) >= MAX_WORDS_PER_SOURCE and at >= _ALWAYS_INDEXED_WORDS:
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


# --- Search for one audience: its own tools, ranked by BM25 over the shared index ---

EXACT_NAME_SCORE = 100.0
"""Score added to a tool if the query is exactly its name."""

# Bounds of one query: characters, terms, similar words merged into a term, unknown words corrected.
_MAX_QUERY_CHARS = 4_000
_MAX_QUERY_WORDS = 16
_MAX_SIMILAR_WORDS = 32
_MAX_CORRECTED_WORDS = 8
_MIN_PREFIX_CHARS, _MIN_CORRECTED_CHARS = 2, 4
_PREFIX_FACTOR, _CORRECTION_FACTOR = 0.4, 0.6
"""Weight of a prefix match and of a misspelled match, relative to the exact word."""
_SELECTIVE_TOOLS, _SELECTIVE_SHARE = 50, 8
"""A word in more than 50 tools and more than an eighth of all selects no tool: it only affects ranking."""
_IGNORED_SHARE = 2
"""A word in more than half of all tools is ignored."""
_MAX_CACHED_COUNTS = 4_096
_TIE_SCORE = -1e-10
"""Score per list position: breaks ties in favour of the earlier tool."""

_ROUNDING_ERROR = 1e-4
"""Upper bound of the difference between two scores that round to the same value."""

_QueryTerm = tuple[int, Mapping[int, float], float]
"""A query term: its document frequency in this audience, its weight per tool position, its factor."""
_NO_MATCH: _QueryTerm = (0, {}, 0.0)


class Index:
    """A searchable set of tools. Those that `corpus` lacks are indexed when it is created."""

    def __init__(self, tools: Iterable[Tool], corpus: Corpus | None = None) -> None:
        self._corpus = Corpus() if corpus is None else corpus
        self._tools = tuple(tools)
        self._orders = {place: order for order, place in enumerate(self._corpus.places(self._tools))}
        self._many = max(_SELECTIVE_TOOLS, len(self._tools) // _SELECTIVE_SHARE)
        self._known: dict[str, int] = {}

    def find(self, query: str, limit: int | None = None) -> tuple[Tool, ...]:
        """Return the tools that match any selective word, best first; all of them if the query is blank."""
        if not query.strip():
            return self._tools[:limit]
        scores = self._scores(query)
        return tuple([self._at(place) for place in _best_positions(scores, limit)])

    def rank(self, query: str, limit: int | None = None) -> dict[str, float]:
        """Return the scores of the matching tools by canonical name, best first."""
        scores = self._scores(query)
        return {self._at(place).name: round(scores[place], 4) for place in _best_positions(scores, limit)}

    def fit(self, query: str, most: int) -> dict[str, float]:
        """Return the scores of the `most` best tools, and of all that tie with the last of them.

        They are unordered: breaking ties is left to the caller.
        """
        scores = self._scores(query)
        least = round(min(nlargest(most, scores.values()), default=0.0), 4)
        rounded = (
            (place, round(score, 4)) for place, score in scores.items() if score > least - _ROUNDING_ERROR
        )
        return {self._at(place).name: score for place, score in rounded if score >= least}

    def _at(self, place: int) -> Tool:
        return self._tools[self._orders[place]]

    def _scores(self, query: str) -> dict[int, float]:
        # The end of a long text: its latest words matter most.
        scores = self._by_words(query[-_MAX_QUERY_CHARS:])
        for place in self._corpus.named(query.strip()):
            order = self._orders.get(place)
            if order is not None:
                scores[place] = scores.get(place, order * _TIE_SCORE) + EXACT_NAME_SCORE
        return scores

    def _by_words(self, query: str) -> dict[int, float]:
        asked = self._asked(query)
        # If every word is common, the rarest one selects.
        chosen = [each for each in asked if each[0] <= self._many] or asked[:1]
        scores: dict[int, float] = {}
        for count, held, worth in chosen:
            self._choose(scores, held, worth * self._telling(count))
        for count, held, worth in asked[len(chosen) :]:
            if count <= len(self._tools) // _IGNORED_SHARE:
                _add_scores(scores, held, worth * self._telling(count))
        return scores

    def _asked(self, query: str) -> list[_QueryTerm]:
        """Return the query terms that match anything, rarest first."""
        said = words(query)
        told = [word for word in said if word not in STOP_WORDS] or said
        stems = list(dict.fromkeys(map(stem, told)))
        asked = [(self._count(each), self._corpus.having(each), 1.0) for each in stems]
        unknown = [each for each, known in zip(stems, asked, strict=True) if not known[0]]
        # Only the last unknown words: a long conversation usually repeats the earlier ones in other words.
        asked += map(self._misspelt, unknown[-_MAX_CORRECTED_WORDS:])
        if told and told[-1] == said[-1] and query[-1].isalnum():
            asked.append(self._begun(told[-1]))
        return sorted((each for each in asked if each[0]), key=_document_frequency)[:_MAX_QUERY_WORDS]

    def _begun(self, word: str) -> _QueryTerm:
        """Return the words that have this prefix, as the last word of a query may be incomplete.

        A common word counts as complete: its extensions are rarer and would select instead of it.
        """
        whole = stem(word)
        if len(word) < _MIN_PREFIX_CHARS or self._count(whole) > self._many:
            return _NO_MATCH
        return self._together((each for each in self._corpus.starting(word) if each != whole), _PREFIX_FACTOR)

    def _misspelt(self, word: str) -> _QueryTerm:
        """Return the indexed words within one edit of a word that no tool contains."""
        if len(word) < _MIN_CORRECTED_CHARS or not (word.isascii() and word.isalpha()):
            return _NO_MATCH
        alike = self._corpus.sized(word[0], range(len(word) - 1, len(word) + 2))
        return self._together((each for each in alike if _is_one_edit(word, each)), _CORRECTION_FACTOR)

    def _together(self, alike: Iterable[str], worth: float) -> _QueryTerm:
        """Merge several words into one term with a reduced factor."""
        known = list(islice((each for each in alike if self._count(each)), _MAX_SIMILAR_WORDS))
        if len(known) == 1:
            return self._count(known[0]), self._corpus.having(known[0]), worth
        united: dict[int, float] = {}
        for word in known:
            for place, weight in self._corpus.having(word).items():
                if place in self._orders:
                    united[place] = max(united.get(place, 0.0), weight)
            if len(united) > len(self._orders) // _IGNORED_SHARE:
                break
        return len(united), united, worth

    def _count(self, word: str) -> int:
        """Return a word's document frequency in this audience only: other tools must not affect scores."""
        count = self._known.get(word)
        if count is None:
            if len(self._known) >= _MAX_CACHED_COUNTS:
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
                scores[place] = known(place, order * _TIE_SCORE) + weight * telling


def _add_scores(scores: dict[int, float], held: Mapping[int, float], telling: float) -> None:
    weights = held.get
    for place in scores:
        weight = weights(place)
        if weight is not None:
            scores[place] += weight * telling


def _is_one_edit(word: str, other: str) -> bool:
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


def _best_positions(scores: dict[int, float], limit: int | None) -> list[int]:
    # Sort plain integers: thousands of tuples would trigger the garbage collector.
    if limit is not None and limit < len(scores):
        return nlargest(limit, scores, key=scores.__getitem__)
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _document_frequency(asked: _QueryTerm) -> int:
    return asked[0]
