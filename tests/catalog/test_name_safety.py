"""Safe names for ten thousand random tool names."""

import re
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from toolcrib.catalog import Catalog
from toolcrib.formats import PROVIDERS
from toolcrib.interfaces import Offer
from toolcrib.model import Family, Tool
from toolcrib.testing import a_tool

pytestmark = [pytest.mark.slow, pytest.mark.requirement("A2", "A3", "A4")]

SAFE = re.compile(r"[a-z][a-z0-9_]{0,63}")
FAMILIES: tuple[Family, ...] = ("mcp", "function", "langchain", "openapi")
LETTERS = "abcXYZ019_-. /$ÄßñıİКлλ東京🙂ﬁ①"
PER_SOURCE, SOURCES = 1250, 8


def name(random: Random) -> str:
    """A difficult name: any length, any script, similar to others."""
    length = random.choice((1, 2, 3, 8, 20, 64, 65, 200))
    text = "".join(random.choice(LETTERS) for _ in range(length)).strip()
    return random.choice((text, text.upper(), f"get{text.title()}", "x" * 80 + text)).strip() or "x"


def offers(random: Random) -> dict[str, list[Tool]]:
    """Tools of several sources; names are unique per source."""
    found: dict[str, list[Tool]] = {}
    for place in range(SOURCES):
        source, family = f"Server-{place}.x".lower(), FAMILIES[place % len(FAMILIES)]
        names: set[str] = set()
        while len(names) < PER_SOURCE:
            names.add(name(random))
        found[source] = [a_tool(f"{source}:{each}", family=family, exposed="") for each in sorted(names)]
    return found


def served(
    tools: Mapping[str, Sequence[Tool]], arriving: Sequence[str], claims: dict[str, str]
) -> dict[str, str]:
    """The safe names after all sources have come up in this order, with stored claims."""

    def keep(fresh: Mapping[str, str], stale: Sequence[str]) -> None:
        claims.update(fresh)
        for each in stale:
            claims.pop(each, None)

    catalog = Catalog(list(tools), claims=dict(claims), claimed=keep)  # type: ignore[arg-type]
    for source in arriving:
        catalog.replace(source, Offer(tools=tools[source]))
    assert len(catalog.snapshot.tools) + len(catalog.snapshot.withheld) == PER_SOURCE * SOURCES
    return {tool.name: tool.exposed for tool in catalog.snapshot.tools.values()}


@pytest.mark.no_cover
@pytest.mark.check(12)
def test_safe_names_are_unique_short_valid_and_stable() -> None:
    random = Random(7)  # noqa: S311 - the same names in every run
    tools, claims = offers(random), dict[str, str]()
    first = served(tools, list(tools), claims)
    exposed = list(first.values())
    assert len(exposed) > PER_SOURCE * SOURCES / 2
    assert len(set(exposed)) == len(exposed)
    assert [each for each in exposed if not SAFE.fullmatch(each)] == []
    for provider in PROVIDERS.values():
        taken = re.compile(provider.bounds.name)
        assert [each for each in exposed if not taken.fullmatch(each)] == [], provider.name
    for _ in range(2):
        arriving = random.sample(list(tools), SOURCES)
        assert served(tools, arriving, dict(claims)) == first
    # Without stored claims the first source may own a shared name; no tool is ever renamed.
    other = served(tools, list(reversed(tools)), {})
    assert {each: name for each, name in other.items() if first.get(each, name) != name} == {}
