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
"""Longest URI or template that is matched, in characters."""
MAX_TEMPLATE_VARIABLES = 16
"""Most variables of a template that is matched."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_SLASH_OPERATORS = frozenset("+#/?&")
"""Operators with an expansion that may contain a slash; expansions of all others may not."""

PositionMasks = MutableMapping[str, int]
"""Where each text begins in one URI, as a bit mask by position."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """Literal texts, and the variables between them."""

    texts: tuple[str, ...]
    blanks: tuple[bool, ...]
    """Whether the expansion of each variable may contain a slash. Variable i stands before text i + 1."""

    @property
    def fixed(self) -> int:
        """The length of the literal text: of two templates that match, the one with more is more specific."""
        return sum(map(len, self.texts))

    def fits(self, uri: str, known: PositionMasks | None = None) -> bool:
        """Whether some values of the variables expand to this URI. `known` caches masks across templates.

        All reachable positions are advanced at once, as the bits of one integer, so there is no backtracking:
        a template is untrusted input and must not be able to make this slow.
        """
        if len(uri) > MAX_MATCHED_CHARACTERS or not (
            uri.startswith(self.texts[0]) and uri.endswith(self.texts[-1])
        ):
            return False
        known = {} if known is None else known
        end = 1 << len(uri)
        smooth = (end - 1) & ~_position_mask("/", uri, known)
        reached = 1 << len(self.texts[0])
        for text, whole in zip(self.texts[1:], self.blanks, strict=True):
            reached = -(reached & -reached) & (2 * end - 1) if whole else _extended(reached, smooth)
            reached = (reached & _position_mask(text, uri, known)) << len(text)
            if not reached:
                return False
        return bool(reached & end)


def read_template(text: str) -> UriTemplate | None:
    """Parse a template; None where it is malformed, too long, or has too many variables."""
    parts = _VARIABLE.split(text)
    texts, blanks = parts[::2], parts[1::2]
    if (
        len(blanks) > MAX_TEMPLATE_VARIABLES
        or len(text) > MAX_MATCHED_CHARACTERS
        or any("{" in each or "}" in each for each in texts)
    ):
        return None
    return UriTemplate(tuple(texts), tuple(blank[:1] in _SLASH_OPERATORS for blank in blanks))


def _extended(reached: int, smooth: int) -> int:
    """Extend each position over the following free bits: the carry of an addition runs through them."""
    return (((reached & smooth) + smooth) ^ smooth) | reached


def _position_mask(text: str, uri: str, known: PositionMasks) -> int:
    found = known.get(text)
    if found is None:
        found = known[text] = _computed_mask(text, uri, known) if text else (2 << len(uri)) - 1
    return found


def _computed_mask(text: str, uri: str, known: PositionMasks) -> int:
    """Return the mask of a text; one with many occurrences is combined from the masks of its characters."""
    found, at, least = 0, uri.find(text), len(text) if len(text) > 1 else len(uri)
    while at >= 0 and least:
        found |= 1 << at
        at, least = uri.find(text, at + 1), least - 1
    if at < 0:
        return found
    found = -1
    for place, letter in enumerate(text):
        found &= _position_mask(letter, uri, known) >> place
    return found


# --- Index of the resources of several sources: resolves URIs, and rewrites URIs so that they resolve back
# ---

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
    def _owners(self) -> dict[str, SourceExtras]:
        return _first_owners(
            self.holdings.values(), lambda each: [one["uri"] for one in each.materials.resources]
        )

    @cached_property
    def _makers(self) -> dict[str, SourceExtras]:
        return _first_owners(
            self.holdings.values(), lambda each: [one["uriTemplate"] for one in each.materials.templates]
        )

    @cached_property
    def _templates(self) -> list[tuple[int, UriTemplate, SourceExtras]]:
        """Templates with the most fixed text first; among equals, in the order of the sources."""
        read = ((read_template(text), holding) for text, holding in self._makers.items())
        found = [(template.fixed, template, holding) for template, holding in read if template is not None]
        return sorted(found, key=itemgetter(0), reverse=True)

    @cached_property
    def _cost(self) -> int:
        """The cost of matching one URI against all templates."""
        return _MIN_TEMPLATE_COST + sum(_MIN_TEMPLATE_COST + fixed for fixed, _, _ in self._templates)

    def find(self, uri: str, *, alone: bool = True) -> FoundResource | None:
        """Resolve a URI: a qualified one, a listed one, one that matches a template; else the only source's.

        `alone` False leaves out that last guess.
        """
        named = self._named(uri)
        if named is not None:
            return named
        owner = self._owners.get(uri)
        if owner is not None:
            return FoundResource(owner, uri)
        maker = self._maker(uri)
        if maker is None and alone and len(self.holdings) == 1:
            (maker,) = self.holdings.values()
        return None if maker is None else FoundResource(maker, uri)

    def find_template(self, text: str) -> FoundResource | None:
        """Resolve a template; an unlisted one is resolved as a URI, without a guess."""
        maker = self._makers.get(text)
        if maker is None or self._named(text) is not None:
            return self.find(text, alone=False)
        return FoundResource(maker, text)

    def spelling(self, holding: SourceExtras, *, links: bool = False) -> Callable[[str], str]:
        """Return a function that rewrites the URIs in one result of a source, so that they resolve to it.

        Web links that no source knows stay unchanged. A source may return any number of URIs and list any
        number of templates: once the matching budget is used up, the remaining URIs are qualified, which is
        right for every URI of the source.
        """
        left = 1 + MATCH_BUDGET_CHARACTERS // self._cost

        def spell(uri: str) -> str:
            nonlocal left
            left -= 1
            found = self.find(uri) if left >= 0 else None
            if found is None and links and uri.startswith(_WEB_SCHEMES):
                return uri
            leads = found is not None and found.holding is holding and found.name == uri
            return uri if leads else _qualified_uri(holding, uri)

        return spell

    def listed(self) -> list[JsonObject]:
        """Return every resource, under the URI it is shown by."""
        return [
            resource
            if self._owners[resource["uri"]] is holding and self._named(resource["uri"]) is None
            else {**resource, "uri": _qualified_uri(holding, resource["uri"])}
            for holding in self.holdings.values()
            for resource in holding.materials.resources
        ]

    def listed_templates(self) -> list[JsonObject]:
        """Return every template, under the text it is shown by."""
        return [
            template
            if self._makers[template["uriTemplate"]] is holding
            and self._named(template["uriTemplate"]) is None
            else {**template, "uriTemplate": _qualified_uri(holding, template["uriTemplate"])}
            for holding in self.holdings.values()
            for template in holding.materials.templates
        ]

    @cached_property
    def mark(self) -> bytes:
        """A digest of the lists."""
        return digest_of(self.listed(), self.listed_templates())

    def _named(self, uri: str) -> FoundResource | None:
        """Resolve a qualified URI; None where it is not one, or its source is not in this index."""
        if not uri.startswith(QUALIFIED_SCHEME):
            return None
        source, slash, own = uri[len(QUALIFIED_SCHEME) :].partition("/")
        holding = self.holdings.get(source)
        return FoundResource(holding, own) if holding is not None and slash and own else None

    def _maker(self, uri: str) -> SourceExtras | None:
        known: dict[str, int] = {}
        return next((holding for _, each, holding in self._templates if each.fits(uri, known)), None)


def digest_of(*lists: Sequence[JsonObject]) -> bytes:
    """Return a digest of lists."""
    digest = blake2b(digest_size=16)
    for each in lists:
        digest.update(orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    return digest.digest()


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
        self._shown: dict[str, tuple[list[JsonObject], bytes]] = {}

    @cached_property
    def _every(self) -> _PromptEntries:
        return [
            (FoundResource(holding, prompt["name"]), _safe_name(holding, prompt["name"]), prompt)
            for holding in self.holdings.values()
            for prompt in holding.materials.prompts
        ]

    @cached_property
    def _names(self) -> tuple["_PromptNames", "_PromptNames"]:
        return _PromptNames(self._every, str), _PromptNames(self._every, fold)

    def find(self, name: str) -> FoundResource | None:
        """Resolve a name, exactly or case-folded; refuses one that is ambiguous."""
        exact, folded = self._names
        return exact.find(name) or folded.find(fold(name))

    def listed(self, style: str) -> list[JsonObject]:
        """Return every prompt, named in a style."""
        return self._spelled(style)[0]

    def mark(self, style: str) -> bytes:
        """Return a digest of the list."""
        return self._spelled(style)[1]

    def near(self, name: str) -> tuple[str, ...]:
        """Return names similar to an unknown one."""
        return similar_names(name, [_canonical_name(found) for found, _, _ in self._every])

    def _spelled(self, style: str) -> tuple[list[JsonObject], bytes]:
        if style not in self._shown:
            listed: list[JsonObject] = [
                {**prompt, "name": self._name(found, exposed, style)}
                for found, exposed, prompt in self._every
            ]
            self._shown[style] = (listed, digest_of(listed))
        return self._shown[style]

    def _name(self, found: FoundResource, exposed: str, style: str) -> str:
        """Return the name in the style where it resolves to this prompt, else the canonical name."""
        wanted = {"flat": (found.name, exposed), "safe": (exposed,)}.get(style, ())
        return next((name for name in wanted if self._leads(name, found)), _canonical_name(found))

    def _leads(self, name: str, found: FoundResource) -> bool:
        try:
            return self.find(name) == found
        except Refused:
            return False


class _PromptNames:
    """Maps names to prompts: the first owner wins a canonical or safe name; shared flat names are refused."""

    def __init__(self, every: _PromptEntries, spell: Callable[[str], str]) -> None:
        self._owned: dict[str, FoundResource] = {}
        self._flat: defaultdict[str, list[FoundResource]] = defaultdict(list)
        for found, exposed, _ in every:
            self._owned.setdefault(spell(_canonical_name(found)), found)
            self._owned.setdefault(spell(exposed), found)
            self._flat[spell(found.name)].append(found)

    def find(self, name: str) -> FoundResource | None:
        owner = self._owned.get(name)
        sharers = self._flat.get(name, ()) if owner is None else ()
        if len(sharers) > 1:
            names = ", ".join(map(_canonical_name, sharers[:3]))
            raise Refused("NOT_FOUND", f"{name[:200]} may mean {names}; use one of these names")
        return sharers[0] if sharers else owner


def _canonical_name(found: FoundResource) -> str:
    return f"{found.holding.source}:{found.name}"


def _safe_name(holding: SourceExtras, name: str) -> str:
    return safe(Tool(name=f"{holding.source}:{name}", source=holding.source, family="mcp"))
