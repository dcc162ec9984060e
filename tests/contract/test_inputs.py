"""Arguments stay unchanged at any depth, across retries, whatever the handler does."""

from collections.abc import AsyncGenerator
from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sdk.test_signature import JSON
from toolcrib import Crib, Registry, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E5")]


def spoil(value: Any) -> None:
    """Change all there is to change, from the inside out."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        for each in held.values():
            spoil(each)
        held.clear()
    elif isinstance(value, list):
        listed = cast("list[Any]", value)
        for each in listed:
            spoil(each)
        listed.append("spoilt")


class Spoilers:
    """Handlers that record and mutate their arguments and fail twice."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def _take(self, given: Any) -> str:
        self.seen.append(deepcopy(given))
        spoil(given)
        if len(self.seen) < 3:
            raise ConnectionResetError
        return "done"

    def tools(self) -> list[Any]:
        registry = Registry()

        @create_tool(name="spoil-later", category="query")
        async def later(given: dict[str, Any]) -> str:
            return self._take(given)

        @create_tool(name="spoil-aside", category="query")
        def aside(given: dict[str, Any]) -> str:
            return self._take(given)

        def ready(arguments: dict[str, Any]) -> str:
            return self._take(arguments["given"])

        schema = {"type": "object", "properties": {"given": {"type": "object"}}}
        definition = {"name": "spoil-ready", "parameters": schema}
        return [later, aside, registry.register_tool(definition, ready, category="query")]


NESTED: dict[str, Any] = {
    "list": [1, {"deep": [{"deeper": [[]]}]}],
    "object": {"a": {"b": {}}},
    "text": "x",
    "none": None,
}


def at_once(_lowest: float, _highest: float) -> float:
    return 0.0


async def test_every_attempt_gets_the_original_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.steps.retry.uniform", at_once)
    spoilers = Spoilers()
    async with Crib(tools=spoilers.tools()) as crib:
        for name in ("spoil-later", "spoil-aside", "spoil-ready"):
            spoilers.seen.clear()
            given = {"given": deepcopy(NESTED)}
            result = await crib.call(name, given)
            assert (result.problem, result.data) == (None, "done"), name
            assert spoilers.seen == [NESTED] * 3, "each try sees it whole"
            assert given == {"given": NESTED}, "and the caller's own is untouched"


@create_tool(name="spoil-it", category="query")
async def spoil_it(given: dict[str, Any]) -> str:
    """Mutate the arguments."""
    spoil(given)
    return "done"


@pytest.fixture
async def crib() -> AsyncGenerator[Crib]:
    async with Crib(tools=[spoil_it]) as opened:
        yield opened


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
async def test_arguments_are_not_mutated(crib: Crib, given: dict[str, Any]) -> None:
    before = deepcopy(given)
    assert (await crib.call("spoil-it", {"given": given})).data == "done"
    assert given == before
