"""Index of the resources of several sources: resolves URIs, and rewrites URIs so that they resolve back."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from toolcrib.catalog import SourceExtras
from toolcrib.gateway.uri_templates import UriTemplate, read_template
from toolcrib.model import JsonObject

OURS = "toolcrib://"
"""Scheme of a qualified URI: `toolcrib://`, the id of the source, a slash, and the source's own URI."""
MOST_TRIED = 200_000
"""Budget for matching the URIs of one result against templates, in characters; bounds the time."""

_WEB = ("https://", "http://")
_LEAST = 50
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
        return _first(self.holdings.values(), lambda each: [one["uri"] for one in each.materials.resources])

    @cached_property
    def _makers(self) -> dict[str, SourceExtras]:
        return _first(
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
        return _LEAST + sum(_LEAST + fixed for fixed, _, _ in self._templates)

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
        left = 1 + MOST_TRIED // self._cost

        def spell(uri: str) -> str:
            nonlocal left
            left -= 1
            found = self.find(uri) if left >= 0 else None
            if found is None and links and uri.startswith(_WEB):
                return uri
            leads = found is not None and found.holding is holding and found.name == uri
            return uri if leads else _said(holding, uri)

        return spell

    def listed(self) -> list[JsonObject]:
        """Return every resource, under the URI it is shown by."""
        return [
            resource
            if self._owners[resource["uri"]] is holding and self._named(resource["uri"]) is None
            else {**resource, "uri": _said(holding, resource["uri"])}
            for holding in self.holdings.values()
            for resource in holding.materials.resources
        ]

    def listed_templates(self) -> list[JsonObject]:
        """Return every template, under the text it is shown by."""
        return [
            template
            if self._makers[template["uriTemplate"]] is holding
            and self._named(template["uriTemplate"]) is None
            else {**template, "uriTemplate": _said(holding, template["uriTemplate"])}
            for holding in self.holdings.values()
            for template in holding.materials.templates
        ]

    @cached_property
    def mark(self) -> bytes:
        """A digest of the lists."""
        return marked(self.listed(), self.listed_templates())

    def _named(self, uri: str) -> FoundResource | None:
        """Resolve a qualified URI; None where it is not one, or its source is not in this index."""
        if not uri.startswith(OURS):
            return None
        source, slash, own = uri[len(OURS) :].partition("/")
        holding = self.holdings.get(source)
        return FoundResource(holding, own) if holding is not None and slash and own else None

    def _maker(self, uri: str) -> SourceExtras | None:
        known: dict[str, int] = {}
        return next((holding for _, each, holding in self._templates if each.fits(uri, known)), None)


def marked(*lists: Sequence[JsonObject]) -> bytes:
    """Return a digest of lists."""
    digest = blake2b(digest_size=16)
    for each in lists:
        digest.update(orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    return digest.digest()


def _said(holding: SourceExtras, uri: str) -> str:
    # Not percent-encoded: an expanded template must still be a URI of this source.
    return f"{OURS}{holding.source}/{uri}"


def _first(
    holdings: Iterable[SourceExtras], names: Callable[[SourceExtras], Iterable[str]]
) -> dict[str, SourceExtras]:
    owners: dict[str, SourceExtras] = {}
    for holding in holdings:
        for name in names(holding):
            owners.setdefault(name, holding)
    return owners
