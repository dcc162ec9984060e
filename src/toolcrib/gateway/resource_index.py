"""Index of resources, URI templates and prompts of all sources."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from toolcrib.catalog import SourceExtras
from toolcrib.errors import Refused
from toolcrib.model import JsonObject, Tool
from toolcrib.names import fold, safe, similar_names

# --- Matches a URI against a URI template (RFC 6570) in one pass with bit masks, without backtracking ---

MAX_MATCHED_CHARACTERS = 2_048
"""A longer URI or template matches nothing."""
MAX_TEMPLATE_VARIABLES = 16

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_SLASH_OPERATORS = frozenset("+#/?&")
"""Operators with an expansion that may contain a slash; expansions of all others may not."""

PositionMasks = MutableMapping[str, int]
"""Where each text begins in one URI, as a bit mask by position."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """Literal texts, and the variables between them."""

    literals: tuple[str, ...]
    may_contain_slash: tuple[bool, ...]
    """Whether the expansion of each variable may contain a slash. Variable i stands before text i + 1."""

    @property
    def literal_length(self) -> int:
        """The length of the literal text: of two templates that match, the one with more is more specific."""
        return sum(map(len, self.literals))

    def matches(self, uri: str, masks: PositionMasks | None = None) -> bool:
        """Whether some values of the variables expand to this URI. `masks` is a cache shared by templates.

        All reachable positions are advanced at once, as the bits of one integer, so there is no backtracking:
        a template is untrusted input and must not be able to make this slow.
        """
        if len(uri) > MAX_MATCHED_CHARACTERS or not (
            uri.startswith(self.literals[0]) and uri.endswith(self.literals[-1])
        ):
            return False
        masks = {} if masks is None else masks
        end_bit = 1 << len(uri)
        non_slash_bits = (end_bit - 1) & ~_position_mask("/", uri, masks)
        positions = 1 << len(self.literals[0])
        for text, slash_allowed in zip(self.literals[1:], self.may_contain_slash, strict=True):
            positions = (
                -(positions & -positions) & (2 * end_bit - 1)
                if slash_allowed
                else _extended(positions, non_slash_bits)
            )
            positions = (positions & _position_mask(text, uri, masks)) << len(text)
            if not positions:
                return False
        return bool(positions & end_bit)


def read_template(text: str) -> UriTemplate | None:
    """Parse a template; None where it is malformed, too long, or has too many variables."""
    parts = _VARIABLE.split(text)
    literals, variables = parts[::2], parts[1::2]
    if (
        len(variables) > MAX_TEMPLATE_VARIABLES
        or len(text) > MAX_MATCHED_CHARACTERS
        or any("{" in each or "}" in each for each in literals)
    ):
        return None
    return UriTemplate(tuple(literals), tuple(variable[:1] in _SLASH_OPERATORS for variable in variables))


def _extended(positions: int, non_slash_bits: int) -> int:
    """Extend each position over the following free bits: the carry of an addition runs through them."""
    return (((positions & non_slash_bits) + non_slash_bits) ^ non_slash_bits) | positions


def _position_mask(text: str, uri: str, masks: PositionMasks) -> int:
    mask = masks.get(text)
    if mask is None:
        mask = masks[text] = _computed_mask(text, uri, masks) if text else (2 << len(uri)) - 1
    return mask


def _computed_mask(text: str, uri: str, masks: PositionMasks) -> int:
    """Return the mask of a text; one with many occurrences is combined from the masks of its characters."""
    mask, start, remaining = 0, uri.find(text), len(text) if len(text) > 1 else len(uri)
    while start >= 0 and remaining:
        mask |= 1 << start
        start, remaining = uri.find(text, start + 1), remaining - 1
    if start < 0:
        return mask
    mask = -1
    for offset, character in enumerate(text):
        mask &= _position_mask(character, uri, masks) >> offset
    return mask


# --- Index of the resources of several sources: resolves and rewrites URIs ---

QUALIFIED_SCHEME = "toolcrib://"
"""Scheme of a qualified URI: `toolcrib://`, the id of the source, a slash, and the source's own URI."""
MATCH_BUDGET_CHARACTERS = 200_000
"""Budget for matching the URIs of one result against templates, in characters; bounds the time."""

_WEB_SCHEMES = ("https://", "http://")
_MIN_TEMPLATE_COST = 50
"""Minimum cost of matching one template, in characters."""


class FoundResource(NamedTuple):
    """A resolved resource, template or prompt: its source, and its name or URI there."""

    holding: SourceExtras
    name: str


class ResourceIndex:
    """The resources and templates of these sources; the first source that lists a URI owns it."""

    def __init__(self, holdings: Sequence[SourceExtras]) -> None:
        self.holdings = {each.source: each for each in holdings}
        self.rendered: dict[str, Any] = {}
        """Pages that frontends have rendered from this index, by list, revision and style."""

    @cached_property
    def _resource_owners(self) -> dict[str, SourceExtras]:
        return _first_owners(
            self.holdings.values(), lambda each: [one["uri"] for one in each.materials.resources]
        )

    @cached_property
    def _template_owners(self) -> dict[str, SourceExtras]:
        return _first_owners(
            self.holdings.values(), lambda each: [one["uriTemplate"] for one in each.materials.templates]
        )

    @cached_property
    def _templates(self) -> list[tuple[int, UriTemplate, SourceExtras]]:
        """Templates with the most fixed text first; among equals, in the order of the sources."""
        read = ((read_template(text), holding) for text, holding in self._template_owners.items())
        found = [
            (template.literal_length, template, holding) for template, holding in read if template is not None
        ]
        return sorted(found, key=itemgetter(0), reverse=True)

    @cached_property
    def _cost(self) -> int:
        """The cost of matching one URI against all templates."""
        return _MIN_TEMPLATE_COST + sum(
            _MIN_TEMPLATE_COST + literal_length for literal_length, _, _ in self._templates
        )

    def find(self, uri: str, *, guess: bool = True) -> FoundResource | None:
        """Resolve a URI: a qualified one, a listed one, one that matches a template; else the only source's.

        `guess` False leaves out that last guess.
        """
        qualified = self._resolve_qualified(uri)
        if qualified is not None:
            return qualified
        owner = self._resource_owners.get(uri)
        if owner is not None:
            return FoundResource(owner, uri)
        owner = self._matching_owner(uri)
        if owner is None and guess and len(self.holdings) == 1:
            (owner,) = self.holdings.values()
        return None if owner is None else FoundResource(owner, uri)

    def find_template(self, text: str) -> FoundResource | None:
        """Resolve a template; an unlisted one is resolved as a URI, without a guess."""
        owner = self._template_owners.get(text)
        if owner is None or self._resolve_qualified(text) is not None:
            return self.find(text, guess=False)
        return FoundResource(owner, text)

    def spelling(self, holding: SourceExtras, *, links: bool = False) -> Callable[[str], str]:
        """Return a function that rewrites the URIs in one result of a source, so that they resolve to it.

        Web links that no source knows stay unchanged. A source may return any number of URIs and list any
        number of templates: once the matching budget is used up, the remaining URIs are qualified, which is
        right for every URI of the source.
        """
        left = 1 + MATCH_BUDGET_CHARACTERS // self._cost

        def rewrite(uri: str) -> str:
            nonlocal left
            left -= 1
            found = self.find(uri) if left >= 0 else None
            if found is None and links and uri.startswith(_WEB_SCHEMES):
                return uri
            resolves = found is not None and found.holding is holding and found.name == uri
            return uri if resolves else _qualified_uri(holding, uri)

        return rewrite

    def listed(self) -> list[JsonObject]:
        """Return every resource, under the URI it is shown by."""
        return [
            resource
            if self._resource_owners[resource["uri"]] is holding
            and self._resolve_qualified(resource["uri"]) is None
            else {**resource, "uri": _qualified_uri(holding, resource["uri"])}
            for holding in self.holdings.values()
            for resource in holding.materials.resources
        ]

    def listed_templates(self) -> list[JsonObject]:
        """Return every template, under the text it is shown by."""
        return [
            template
            if self._template_owners[template["uriTemplate"]] is holding
            and self._resolve_qualified(template["uriTemplate"]) is None
            else {**template, "uriTemplate": _qualified_uri(holding, template["uriTemplate"])}
            for holding in self.holdings.values()
            for template in holding.materials.templates
        ]

    @cached_property
    def digest(self) -> bytes:
        """A digest of the lists."""
        return digest_of(self.listed(), self.listed_templates())

    def _resolve_qualified(self, uri: str) -> FoundResource | None:
        """Resolve a qualified URI; None where it is not one, or its source is not in this index."""
        if not uri.startswith(QUALIFIED_SCHEME):
            return None
        source, slash, source_uri = uri[len(QUALIFIED_SCHEME) :].partition("/")
        holding = self.holdings.get(source)
        return FoundResource(holding, source_uri) if holding is not None and slash and source_uri else None

    def _matching_owner(self, uri: str) -> SourceExtras | None:
        masks: dict[str, int] = {}
        return next((holding for _, each, holding in self._templates if each.matches(uri, masks)), None)


def digest_of(*lists: Sequence[JsonObject]) -> bytes:
    """Return a digest of lists."""
    hasher = blake2b(digest_size=16)
    for each in lists:
        hasher.update(orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    return hasher.digest()


def _qualified_uri(holding: SourceExtras, uri: str) -> str:
    # Not percent-encoded: an expanded template must still be a URI of this source.
    return f"{QUALIFIED_SCHEME}{holding.source}/{uri}"


def _first_owners(
    holdings: Iterable[SourceExtras], names: Callable[[SourceExtras], Iterable[str]]
) -> dict[str, SourceExtras]:
    owners: dict[str, SourceExtras] = {}
    for holding in holdings:
        for name in names(holding):
            owners.setdefault(name, holding)
    return owners


# --- Index of the prompts of several sources: resolves names, and renders lists under unambiguous names ---

_PromptEntries = list[tuple[FoundResource, str, JsonObject]]
"""Each prompt with its safe name and its definition."""


class PromptIndex:
    """The prompts of these sources, named by the same rules as tools."""

    def __init__(self, holdings: Sequence[SourceExtras]) -> None:
        self.holdings = {each.source: each for each in holdings}
        self.rendered: dict[str, Any] = {}
        """Pages that frontends have rendered from this index, by list, revision and style."""
        self._lists: dict[str, tuple[list[JsonObject], bytes]] = {}

    @cached_property
    def _entries(self) -> _PromptEntries:
        return [
            (FoundResource(holding, prompt["name"]), _safe_name(holding, prompt["name"]), prompt)
            for holding in self.holdings.values()
            for prompt in holding.materials.prompts
        ]

    @cached_property
    def _names(self) -> tuple["_PromptNames", "_PromptNames"]:
        return _PromptNames(self._entries, str), _PromptNames(self._entries, fold)

    def find(self, name: str) -> FoundResource | None:
        """Resolve a name, exactly or case-folded; refuses one that is ambiguous."""
        exact, folded = self._names
        return exact.find(name) or folded.find(fold(name))

    def listed(self, style: str) -> list[JsonObject]:
        """Return every prompt, named in a style."""
        return self._rendered_list(style)[0]

    def digest(self, style: str) -> bytes:
        """Return a digest of the list."""
        return self._rendered_list(style)[1]

    def near(self, name: str) -> tuple[str, ...]:
        """Return names similar to an unknown one."""
        return similar_names(name, [_canonical_name(found) for found, _, _ in self._entries])

    def _rendered_list(self, style: str) -> tuple[list[JsonObject], bytes]:
        if style not in self._lists:
            listed: list[JsonObject] = [
                {**prompt, "name": self._name(found, exposed, style)}
                for found, exposed, prompt in self._entries
            ]
            self._lists[style] = (listed, digest_of(listed))
        return self._lists[style]

    def _name(self, found: FoundResource, exposed: str, style: str) -> str:
        """Return the name in the style where it resolves to this prompt, else the canonical name."""
        wanted = {"flat": (found.name, exposed), "safe": (exposed,)}.get(style, ())
        return next((name for name in wanted if self._resolves_to(name, found)), _canonical_name(found))

    def _resolves_to(self, name: str, found: FoundResource) -> bool:
        try:
            return self.find(name) == found
        except Refused:
            return False


class _PromptNames:
    """Maps names to prompts: the first owner wins a canonical or safe name; shared flat names are refused."""

    def __init__(self, entries: _PromptEntries, normalize: Callable[[str], str]) -> None:
        self._owned: dict[str, FoundResource] = {}
        self._flat: defaultdict[str, list[FoundResource]] = defaultdict(list)
        for found, exposed, _ in entries:
            self._owned.setdefault(normalize(_canonical_name(found)), found)
            self._owned.setdefault(normalize(exposed), found)
            self._flat[normalize(found.name)].append(found)

    def find(self, name: str) -> FoundResource | None:
        owner = self._owned.get(name)
        candidates = self._flat.get(name, ()) if owner is None else ()
        if len(candidates) > 1:
            names = ", ".join(map(_canonical_name, candidates[:3]))
            raise Refused("NOT_FOUND", f"{name[:200]} is ambiguous; use one of {names}")
        return candidates[0] if candidates else owner


def _canonical_name(found: FoundResource) -> str:
    return f"{found.holding.source}:{found.name}"


def _safe_name(holding: SourceExtras, name: str) -> str:
    return safe(Tool(name=f"{holding.source}:{name}", source=holding.source, family="mcp"))
