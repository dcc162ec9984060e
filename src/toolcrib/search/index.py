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
_STOP_WORD_TEXT = (
    "a an and any are as at be by can could do does for from has have how i if in into is it its me my"
    " not of on or our please so some such that the their them then there these this those to us want was"
    " we what when where which who will with would you your"
)
STOP_WORDS = frozenset(_STOP_WORD_TEXT.split())
"""English stop words."""


def words(text: str) -> Sequence[str]:
    """Return the tokens of a text, case-folded but not stemmed."""
    if text.isascii():
        return [word.lower() for word in _ASCII_TOKENS.findall(text)]
    tokens = _UNICODE_TOKENS.findall(_folded(_CASE_BOUNDARY.sub(" ", text)))
    return [part for token in tokens for part in ((token,) if token.isascii() else _bigrams(token))]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Strip English suffixes, so that `searches` and `searching` become `search`."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        has_vowel = any(letter in "aeiouy" for letter in base)
        if base != word and len(base) > 2 and has_vowel and not word.endswith("eed"):
            doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
            word = base[:-1] if doubled else base
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def content_stem(word: str) -> str:
    """Return the stem of a word; empty for a stop word."""
    return "" if word in STOP_WORDS else stem(word)


def _folded(text: str) -> str:
    """Fold case and strip combining marks, vowel signs included: index and query are treated alike."""
    # Some characters decompose to whole phrases. Korean syllables, the longest ordinary case, take three.
    decomposed = normalize("NFKD", text.casefold())[: 4 * len(text) + _MIN_FOLDED_CHARS]
    return normalize("NFC", "".join(each for each in decomposed if category(each)[0] != "M")).casefold()


def _bigrams(word: str) -> Iterator[str]:
    """Split runs of unspaced scripts into character bigrams, as their word boundaries are unknown."""
    end = 0
    for run in _UNSPACED_SCRIPTS.finditer(word):
        if run.start() > end:
            yield word[end : run.start()]
        end, text = run.end(), run.group()
        yield from (text[at : at + 2] for at in range(len(text) - 1)) if len(text) > 1 else (text,)
    if end < len(word):
        yield word[end:]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


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
    count_of = counts.get
    for weight, text in _short_fields(tool):
        for word in map(stem, words(text[:_MAX_FIELD_CHARS])):
            counts[word] = count_of(word, 0.0) + weight
    length = 0
    for weight, text in _long_fields(tool):
        tokens = words(text[:_MAX_FIELD_CHARS])
        length += len(tokens)
        for word in map(content_stem, tokens):
            counts[word] = count_of(word, 0.0) + weight
    counts.pop("", None)
    saturation = _K1 * (1 - _LENGTH_NORMALIZATION + _LENGTH_NORMALIZATION * length / _AVERAGE_WORDS)
    # Words of the name fields come first, so that the cut drops words of the description.
    indexed = islice(counts.items(), _MAX_TOOL_WORDS)
    return {word: count * (_K1 + 1) / (count + saturation) for word, count in indexed}


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
    parameters = _parameters(tool.input_schema)
    yield PARAMETER_WEIGHT, " ".join(name for name, _ in parameters)
    yield PARAMETER_TEXT_WEIGHT, " ".join(description for _, description in parameters if description)


def _parameters(schema: JsonObject) -> list[tuple[str, str]]:
    """Return names and descriptions of parameters, including those of nested objects and arrays."""
    parameters: list[tuple[str, str]] = []
    level: list[Any] = [schema]
    for _ in range(_MAX_SCHEMA_DEPTH):
        nested: list[Any] = []
        for each in level:
            for name, member in _properties(each):
                parameters.append((name, str(member.get("description", ""))))
                nested += (part for part in (member, member.get("items")) if part and "properties" in part)
                if len(parameters) >= _MAX_PARAMETERS:
                    return parameters
        level = nested
    return parameters


def _properties(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    members = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    if isinstance(members, Mapping):
        for name, member in cast("Mapping[str, Any]", members).items():
            yield str(name), cast("Mapping[str, Any]", member) if isinstance(member, Mapping) else {}


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
        self._positions: dict[tuple[str, str], int] = {}
        self._postings: dict[str, dict[int, float]] = {}
        self._names: dict[str, list[int]] = {}
        self._words_by_source: dict[str, set[str]] = {}
        self._sorted: list[str] = []
        self._by_length: dict[tuple[str, int], list[str]] = {}
        self._indexed_tools: Mapping[str, Tool] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def renewed(self, tools: Mapping[str, Tool]) -> "Corpus":
        """Return the index to use for these tools: this one, or an empty one if most entries are stale."""
        return self if len(self) <= 2 * len(tools) + _MAX_STALE_TOOLS else Corpus()

    async def read(self, tools: Mapping[str, Tool]) -> None:
        """Index a whole catalog in batches that yield to the event loop; a known mapping is skipped."""
        if tools is not self._indexed_tools:
            listed = tuple(tools.values())
            for start in range(0, len(listed), _BATCH_TOOLS):
                self.positions(listed[start : start + _BATCH_TOOLS])
                await checkpoint()
            self._indexed_tools = tools

    def positions(self, tools: Iterable[Tool]) -> list[int]:
        """Return the positions of some tools; new ones are indexed first."""
        known = self._positions
        positions: list[int] = []
        for tool in tools:
            key = (tool.fingerprint or fingerprint(tool), tool.exposed)
            position = known.get(key)
            if position is None:
                position = known[key] = len(known)
                self._add(tool, position)
            positions.append(position)
        return positions

    def postings(self, word: str) -> Mapping[int, float]:
        """Return the positions of the tools that contain a word, with its weight in each."""
        return self._postings.get(word, _NO_POSTINGS)

    def positions_named(self, name: str) -> Sequence[int]:
        """Return the positions of the tools with this name, compared after folding."""
        return self._names.get(fold(name), ())

    def words_with_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the words with this prefix, in alphabetical order."""
        ordered = self._sorted_words()
        for index in range(bisect_left(ordered, prefix), len(ordered)):
            if not ordered[index].startswith(prefix):
                return
            yield ordered[index]

    def words_of_length(self, letter: str, lengths: Iterable[int]) -> Iterator[str]:
        """Yield the words that start with this letter and have one of these lengths."""
        self._sorted_words()
        return chain.from_iterable(self._by_length.get((letter, length), ()) for length in lengths)

    def _add(self, tool: Tool, position: int) -> None:
        all_postings, known = self._postings, self._words_by_source.setdefault(tool.source, set())
        for at, (word, weight) in enumerate(term_weights(tool).items()):
            if word not in known:
                if len(known) >= MAX_WORDS_PER_SOURCE and at >= _ALWAYS_INDEXED_WORDS:
                    continue
                known.add(word)
            postings = all_postings.get(word)
            if postings is None:
                all_postings[word] = {position: weight}
            else:
                postings[position] = weight
        for name in {fold(each) for each in (tool.name, tool.exposed, tool.local, *tool.aliases)}:
            self._names.setdefault(name, []).append(position)

    def _sorted_words(self) -> list[str]:
        if len(self._sorted) != len(self._postings):
            self._sorted = sorted(self._postings)
            self._by_length = {}
            for word in self._sorted:
                self._by_length.setdefault((word[0], len(word)), []).append(word)
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
        positions = self._corpus.positions(self._tools)
        self._order_of = {position: order for order, position in enumerate(positions)}
        self._max_selective_tools = max(_SELECTIVE_TOOLS, len(self._tools) // _SELECTIVE_SHARE)
        self._frequencies: dict[str, int] = {}

    def find(self, query: str, limit: int | None = None) -> tuple[Tool, ...]:
        """Return the tools that match any selective word, best first; all of them if the query is blank."""
        if not query.strip():
            return self._tools[:limit]
        scores = self._scores(query)
        return tuple([self._at(position) for position in _best_positions(scores, limit)])

    def rank(self, query: str, limit: int | None = None) -> dict[str, float]:
        """Return the scores of the matching tools by canonical name, best first."""
        scores = self._scores(query)
        return {self._at(best).name: round(scores[best], 4) for best in _best_positions(scores, limit)}

    def fit(self, query: str, limit: int) -> dict[str, float]:
        """Return the scores of the `limit` best tools, and of all that tie with the last of them.

        They are unordered: breaking ties is left to the caller.
        """
        scores = self._scores(query)
        lowest = round(min(nlargest(limit, scores.values()), default=0.0), 4)
        threshold = lowest - _ROUNDING_ERROR
        candidates = ((at, round(score, 4)) for at, score in scores.items() if score > threshold)
        return {self._at(position).name: score for position, score in candidates if score >= lowest}

    def _at(self, position: int) -> Tool:
        return self._tools[self._order_of[position]]

    def _scores(self, query: str) -> dict[int, float]:
        # The end of a long text: its latest words matter most.
        scores = self._word_scores(query[-_MAX_QUERY_CHARS:])
        for position in self._corpus.positions_named(query.strip()):
            order = self._order_of.get(position)
            if order is not None:
                scores[position] = scores.get(position, order * _TIE_SCORE) + EXACT_NAME_SCORE
        return scores

    def _word_scores(self, query: str) -> dict[int, float]:
        terms = self._query_terms(query)
        # If every word is common, the rarest one selects.
        selective = [each for each in terms if each[0] <= self._max_selective_tools] or terms[:1]
        scores: dict[int, float] = {}
        for count, postings, factor in selective:
            self._select(scores, postings, factor * self._inverse_frequency(count))
        for count, postings, factor in terms[len(selective) :]:
            if count <= len(self._tools) // _IGNORED_SHARE:
                _add_scores(scores, postings, factor * self._inverse_frequency(count))
        return scores

    def _query_terms(self, query: str) -> list[_QueryTerm]:
        """Return the query terms that match anything, rarest first."""
        tokens = words(query)
        content = [word for word in tokens if word not in STOP_WORDS] or tokens
        stems = list(dict.fromkeys(map(stem, content)))
        terms = [(self._count(each), self._corpus.postings(each), 1.0) for each in stems]
        unknown = [each for each, term in zip(stems, terms, strict=True) if not term[0]]
        # Only the last unknown words: a long conversation usually repeats the earlier ones in other words.
        terms += map(self._corrected_term, unknown[-_MAX_CORRECTED_WORDS:])
        if content and content[-1] == tokens[-1] and query[-1].isalnum():
            terms.append(self._prefix_term(content[-1]))
        return sorted((each for each in terms if each[0]), key=lambda term: term[0])[:_MAX_QUERY_WORDS]

    def _prefix_term(self, word: str) -> _QueryTerm:
        """Return the words that have this prefix, as the last word of a query may be incomplete.

        A common word counts as complete: its extensions are rarer and would select instead of it.
        """
        complete = stem(word)
        if len(word) < _MIN_PREFIX_CHARS or self._count(complete) > self._max_selective_tools:
            return _NO_MATCH
        extensions = (each for each in self._corpus.words_with_prefix(word) if each != complete)
        return self._merged_term(extensions, _PREFIX_FACTOR)

    def _corrected_term(self, word: str) -> _QueryTerm:
        """Return the indexed words within one edit of a word that no tool contains."""
        if len(word) < _MIN_CORRECTED_CHARS or not (word.isascii() and word.isalpha()):
            return _NO_MATCH
        candidates = self._corpus.words_of_length(word[0], range(len(word) - 1, len(word) + 2))
        similar = (each for each in candidates if _is_one_edit(word, each))
        return self._merged_term(similar, _CORRECTION_FACTOR)

    def _merged_term(self, candidates: Iterable[str], factor: float) -> _QueryTerm:
        """Merge several words into one term with a reduced factor."""
        similar = list(islice((each for each in candidates if self._count(each)), _MAX_SIMILAR_WORDS))
        if len(similar) == 1:
            return self._count(similar[0]), self._corpus.postings(similar[0]), factor
        merged: dict[int, float] = {}
        for word in similar:
            for position, weight in self._corpus.postings(word).items():
                if position in self._order_of:
                    merged[position] = max(merged.get(position, 0.0), weight)
            if len(merged) > len(self._order_of) // _IGNORED_SHARE:
                break
        return len(merged), merged, factor

    def _count(self, word: str) -> int:
        """Return a word's document frequency in this audience only: other tools must not affect scores."""
        count = self._frequencies.get(word)
        if count is None:
            if len(self._frequencies) >= _MAX_CACHED_COUNTS:
                self._frequencies.clear()
            count = self._frequencies[word] = len(self._corpus.postings(word).keys() & self._order_of.keys())
        return count

    def _inverse_frequency(self, count: int) -> float:
        """Return the inverse document frequency (BM25) of a word that occurs in `count` tools."""
        return log(1 + (len(self._tools) - count + 0.5) / (count + 0.5))

    def _select(self, scores: dict[int, float], postings: Mapping[int, float], factor: float) -> None:
        """Add the tools of this audience that contain a word."""
        order_of, score_of = self._order_of.get, scores.get
        for position, weight in postings.items():
            order = order_of(position)
            if order is not None:
                scores[position] = score_of(position, order * _TIE_SCORE) + weight * factor


def _add_scores(scores: dict[int, float], postings: Mapping[int, float], factor: float) -> None:
    weight_of = postings.get
    for position in scores:
        weight = weight_of(position)
        if weight is not None:
            scores[position] += weight * factor


def _is_one_edit(word: str, other: str) -> bool:
    """Return whether two words are one insertion, deletion, substitution or transposition apart."""
    if abs(len(word) - len(other)) > 1:
        return False
    start = 0
    for first, second in zip(word, other, strict=False):
        if first != second:
            break
        start += 1
    tail, other_tail = word[start:], other[start:]
    swapped = tail[1:2] + tail[:1] + tail[2:]
    return other_tail in (tail[1:], swapped) or other_tail[1:] in (tail, tail[1:])


def _best_positions(scores: dict[int, float], limit: int | None) -> list[int]:
    # Sort plain integers: thousands of tuples would trigger the garbage collector.
    if limit is not None and limit < len(scores):
        return nlargest(limit, scores, key=scores.__getitem__)
    return sorted(scores, key=scores.__getitem__, reverse=True)
