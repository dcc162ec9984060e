"""The resources of some sources as one list: whose a URI is, and how each is shown so that it leads back."""

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
"""How a URI begins that says whose it is: the source's id, a slash, and the URI as its source spells it."""
MOST_TRIED = 200_000
"""How many letters of templates are held against the URIs of one answer: so long as nobody notices."""

_WEB = ("https://", "http://")
_LEAST = 50
"""What a template costs however short it is, in letters."""


class FoundResource(NamedTuple):
    """Where something is: in which source, under what name of its own."""

    holding: SourceExtras
    name: str


class ResourceIndex:
    """The resources and templates of these sources, the first of which to list a URI owns it."""

    def __init__(self, holdings: Sequence[SourceExtras]) -> None:
        self.holdings = {each.source: each for each in holdings}
        self.rendered: dict[str, Any] = {}
        """What faces have made of these, by how it is spelled."""

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
        """Those with the most fixed text come first; among equals the order of the sources decides."""
        read = ((read_template(text), holding) for text, holding in self._makers.items())
        found = [(template.fixed, template, holding) for template, holding in read if template is not None]
        return sorted(found, key=itemgetter(0), reverse=True)

    @cached_property
    def _cost(self) -> int:
        """What it takes to hold one URI against all templates."""
        return _LEAST + sum(_LEAST + fixed for fixed, _, _ in self._templates)

    def find(self, uri: str, *, alone: bool = True) -> FoundResource | None:
        """Whose a URI is: as it says, as it is listed, as a template has it; else the only source's there is.

        `alone` False leaves that last guess out.
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
        """Whose a template is; what is none of those listed may be a URI, and nobody guesses whose."""
        maker = self._makers.get(text)
        if maker is None or self._named(text) is not None:
            return self.find(text, alone=False)
        return FoundResource(maker, text)

    def spelling(self, holding: SourceExtras, *, links: bool = False) -> Callable[[str], str]:
        """Return what spells the URIs in one answer of a source so that they lead back to it.

        Of links, what anybody can follow, and none of the sources knows, stays as it is. A source may answer
        with any number of URIs, and list any number of templates: once so much was tried, what is left is
        spelled in full, which is right for every URI of the source.
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
        """Every resource, under the URI it is shown by."""
        return [
            resource
            if self._owners[resource["uri"]] is holding and self._named(resource["uri"]) is None
            else {**resource, "uri": _said(holding, resource["uri"])}
            for holding in self.holdings.values()
            for resource in holding.materials.resources
        ]

    def listed_templates(self) -> list[JsonObject]:
        """Every template, under the text it is shown by."""
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
        """What tells these from others."""
        return marked(self.listed(), self.listed_templates())

    def _named(self, uri: str) -> FoundResource | None:
        """Read a URI that says whose it is; of a source that is not here, it says nothing."""
        if not uri.startswith(OURS):
            return None
        source, slash, own = uri[len(OURS) :].partition("/")
        holding = self.holdings.get(source)
        return FoundResource(holding, own) if holding is not None and slash and own else None

    def _maker(self, uri: str) -> SourceExtras | None:
        known: dict[str, int] = {}
        return next((holding for _, each, holding in self._templates if each.fits(uri, known)), None)


def marked(*lists: Sequence[JsonObject]) -> bytes:
    """Tell one list from another."""
    digest = blake2b(digest_size=16)
    for each in lists:
        digest.update(orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    return digest.digest()


def _said(holding: SourceExtras, uri: str) -> str:
    # Not encoded: a template must still make a URI of this source when its blanks are filled in.
    return f"{OURS}{holding.source}/{uri}"


def _first(
    holdings: Iterable[SourceExtras], names: Callable[[SourceExtras], Iterable[str]]
) -> dict[str, SourceExtras]:
    owners: dict[str, SourceExtras] = {}
    for holding in holdings:
        for name in names(holding):
            owners.setdefault(name, holding)
    return owners
