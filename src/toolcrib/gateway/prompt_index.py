"""Index of the prompts of several sources: resolves names, and renders lists under unambiguous names."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from toolcrib.catalog import SourceExtras
from toolcrib.errors import Refused
from toolcrib.gateway.resource_index import FoundResource, marked
from toolcrib.model import JsonObject, Tool
from toolcrib.names import fold, near, safe

_Every = list[tuple[FoundResource, str, JsonObject]]
"""Each prompt with its safe name and its definition."""


class PromptIndex:
    """The prompts of these sources, named by the same rules as tools."""

    def __init__(self, holdings: Sequence[SourceExtras]) -> None:
        self.holdings = {each.source: each for each in holdings}
        self.rendered: dict[str, Any] = {}
        """Pages that frontends have rendered from this index, by list, revision and style."""
        self._shown: dict[str, tuple[list[JsonObject], bytes]] = {}

    @cached_property
    def _every(self) -> _Every:
        return [
            (FoundResource(holding, prompt["name"]), _safe(holding, prompt["name"]), prompt)
            for holding in self.holdings.values()
            for prompt in holding.materials.prompts
        ]

    @cached_property
    def _names(self) -> tuple["_Names", "_Names"]:
        return _Names(self._every, str), _Names(self._every, fold)

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
        return near(name, [_canonical(found) for found, _, _ in self._every])

    def _spelled(self, style: str) -> tuple[list[JsonObject], bytes]:
        if style not in self._shown:
            listed: list[JsonObject] = [
                {**prompt, "name": self._name(found, exposed, style)}
                for found, exposed, prompt in self._every
            ]
            self._shown[style] = (listed, marked(listed))
        return self._shown[style]

    def _name(self, found: FoundResource, exposed: str, style: str) -> str:
        """Return the name in the style where it resolves to this prompt, else the canonical name."""
        wanted = {"flat": (found.name, exposed), "safe": (exposed,)}.get(style, ())
        return next((name for name in wanted if self._leads(name, found)), _canonical(found))

    def _leads(self, name: str, found: FoundResource) -> bool:
        try:
            return self.find(name) == found
        except Refused:
            return False


class _Names:
    """Maps names to prompts: the first owner wins a canonical or safe name; shared flat names are refused."""

    def __init__(self, every: _Every, spell: Callable[[str], str]) -> None:
        self._owned: dict[str, FoundResource] = {}
        self._flat: defaultdict[str, list[FoundResource]] = defaultdict(list)
        for found, exposed, _ in every:
            self._owned.setdefault(spell(_canonical(found)), found)
            self._owned.setdefault(spell(exposed), found)
            self._flat[spell(found.name)].append(found)

    def find(self, name: str) -> FoundResource | None:
        owner = self._owned.get(name)
        sharers = self._flat.get(name, ()) if owner is None else ()
        if len(sharers) > 1:
            names = ", ".join(map(_canonical, sharers[:3]))
            raise Refused("NOT_FOUND", f"{name[:200]} may mean {names}; use one of these names")
        return sharers[0] if sharers else owner


def _canonical(found: FoundResource) -> str:
    return f"{found.holding.source}:{found.name}"


def _safe(holding: SourceExtras, name: str) -> str:
    return safe(Tool(name=f"{holding.source}:{name}", source=holding.source, family="mcp"))
