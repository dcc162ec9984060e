"""Pins: any change of a trusted definition is detected, also after a removal or restart."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.catalog import Catalog, Overrides, PinChange, PinMode, Snapshot, ToolOverride, seal
from toolcrib.catalog.pins import MAX_PINNED_BYTES, Pins
from toolcrib.interfaces import Offer, StoredDefinition
from toolcrib.model import JsonObject
from toolcrib.policy import PinnedRule, Policy
from toolcrib.testing import a_caller, a_tool

NAME = "files:read"
FIRST: JsonObject = {"name": "read", "description": "Reads a file."}
SECOND: JsonObject = {"name": "read", "description": "Reads a file and mails it."}
POLICY = Policy([PinnedRule()])


class PinnedCatalog:
    """A catalog with pins and the stored definitions."""

    def __init__(
        self, mode: PinMode = "strict", stored: Mapping[str, StoredDefinition] | None = None
    ) -> None:
        self.stored = dict(stored or {})
        self.heard: list[Snapshot] = []
        self.catalog = self._made(mode)

    def _made(self, mode: PinMode) -> Catalog:
        made = Catalog(["files", "other"], known=tuple(self.stored.values()), seen=self._seen)
        made.pin({}, {"files": mode})
        made.listen(self.heard.append)
        return made

    def _seen(self, fresh: Sequence[StoredDefinition], gone: Collection[str]) -> None:
        for name in gone:
            del self.stored[name]
        self.stored.update({each.name: each for each in fresh})

    def offer(self, *definitions: JsonObject, source: str = "files") -> None:
        raw = {f"{source}:{each['name']}": each for each in definitions}
        self.catalog.replace(source, Offer(tools=[a_tool(name) for name in raw], definitions=raw))

    def visible(self, name: str = NAME) -> bool:
        tool = self.catalog.snapshot.tools.get(name)
        return tool is not None and POLICY.visible(tool, a_caller())

    @property
    def changes(self) -> list[PinChange]:
        return list(self.catalog.snapshot.changed.values())


@pytest.mark.requirement("I5")
def test_strict_change_is_hidden_until_approved() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    assert pinned.visible()
    assert pinned.stored[NAME].trusted == pinned.stored[NAME].seal == seal(FIRST)
    pinned.offer(SECOND)
    assert not pinned.visible()
    assert pinned.changes == [PinChange(NAME, seal(FIRST), seal(SECOND), "strict")]
    kept = pinned.stored[NAME]
    assert (kept.definition, kept.seal, kept.trusted) == (SECOND, seal(SECOND), seal(FIRST))
    pinned.heard.clear()
    pinned.catalog.pin({NAME: seal(SECOND)}, {"files": "strict"})
    assert pinned.visible()
    assert pinned.changes == []
    assert len(pinned.heard) == 1


@pytest.mark.requirement("I5")
def test_approval_overrides_first_trust() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    pinned.catalog.pin({NAME: seal(SECOND)}, {"files": "strict"})
    assert pinned.changes == [PinChange(NAME, seal(SECOND), seal(FIRST), "strict")]
    pinned.offer(SECOND)
    assert pinned.visible()


@pytest.mark.requirement("I5")
def test_notify_mode_serves_and_reports_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pinned = PinnedCatalog("notify")
    pinned.offer(FIRST)
    assert caplog.messages == []
    for _ in range(3):
        pinned.offer(SECOND)
        pinned.catalog.degrade("files", True)
    assert pinned.visible()
    assert pinned.catalog.snapshot.tools[NAME].changed == "notify"
    assert len(caplog.messages) == 1
    assert NAME in caplog.text
    pinned.offer(FIRST)
    assert pinned.changes == []


def test_off_mode_stores_without_comparing() -> None:
    pinned = PinnedCatalog("off")
    pinned.offer(FIRST)
    pinned.offer(SECOND)
    assert (pinned.changes, pinned.catalog.snapshot.tools[NAME].changed) == ([], "")
    assert pinned.stored[NAME].definition == SECOND
    pinned.catalog.pin({}, {"files": "strict"})
    assert not pinned.visible()


def test_default_pin_mode_is_notify() -> None:
    pinned = PinnedCatalog()
    pinned.offer(FIRST, source="other")
    pinned.offer(SECOND, source="other")
    assert [change.mode for change in pinned.changes] == ["notify"]


@pytest.mark.requirement("I5")
def test_restart_does_not_trust_a_change() -> None:
    before = PinnedCatalog("strict")
    before.offer(FIRST)
    before.offer(SECOND)
    after = PinnedCatalog("strict", before.stored)
    after.offer(deepcopy(SECOND))
    assert not after.visible()
    after.offer(FIRST)
    assert after.visible()


@pytest.mark.requirement("I5")
def test_removed_tool_cannot_return_changed() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    pinned.offer()
    pinned.catalog.remove("files")
    pinned.offer(SECOND)
    assert not pinned.visible()


def test_pins_of_unconfigured_sources_are_dropped() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    pinned.offer(FIRST, source="other")
    pinned.catalog.remove("files")
    pinned.catalog.arrange(["other"])
    assert list(pinned.stored) == ["other:read"]
    later = PinnedCatalog("strict", pinned.stored)
    later.catalog.arrange(["files"])
    assert later.stored == {}
    later.offer(SECOND)
    assert later.visible()


def test_pins_of_unknown_sources_are_kept_up_to_a_bound() -> None:
    row = StoredDefinition(name="gone:x", definition={}, seal="s", trusted="s", seen=1.0)
    assert list(PinnedCatalog("strict", {row.name: row}).stored) == ["gone:x"]
    dropped = list[str]()
    Pins([row], ["files"], lambda _, gone: dropped.extend(gone), max_pins=1)
    assert dropped == ["gone:x"]


def test_unchanged_definition_is_not_written_again() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    row = pinned.stored[NAME]
    pinned.stored.clear()
    pinned.offer(deepcopy(FIRST))
    pinned.catalog.degrade("files", True)
    pinned.catalog.override(Overrides({"files:*": ToolOverride(tags=("t",))}))
    assert pinned.stored == {}
    pinned.offer(SECOND)
    assert pinned.stored[NAME].seen >= row.seen


def test_tools_without_definition_are_not_pinned() -> None:
    pinned = PinnedCatalog("strict")
    for description in ("One.", "Another."):
        tools = [a_tool(NAME, description=description)]
        pinned.catalog.replace("files", Offer(tools=tools))
    assert (pinned.stored, pinned.changes) == ({}, [])
    assert pinned.visible()


def test_overrides_are_no_definition_change() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    pinned.catalog.override(Overrides({NAME: ToolOverride(description="The operator's word.")}))
    assert pinned.visible()


def test_withheld_tool_is_not_trusted() -> None:
    pinned = PinnedCatalog("strict")
    broken = Offer(tools=[a_tool(NAME, input_schema={"type": "array"})], definitions={NAME: SECOND})
    pinned.catalog.replace("files", broken)
    assert pinned.stored == {}
    pinned.offer(FIRST)
    assert pinned.visible()
    pinned.catalog.replace("files", broken)
    pinned.offer(SECOND)
    assert not pinned.visible()


@pytest.mark.parametrize(
    "definition", [{"text": "x" * MAX_PINNED_BYTES}, {"set": {1}}], ids=["too large", "no JSON"]
)
def test_unhashable_definition_is_never_trusted(
    definition: JsonObject, caplog: pytest.LogCaptureFixture
) -> None:
    assert seal(definition) == ""
    pins = Pins((), ["files"], _ignore)
    pins.approve({}, {"files": "strict"})
    for _ in range(2):
        assert pins.look("files", {NAME: definition}) == {NAME: PinChange(NAME, "", "", "strict")}
    pins.approve({NAME: ""}, {"files": "notify"})
    assert pins.look("files", {NAME: definition}) == {}
    assert len(caplog.messages) == 1


def _ignore(_fresh: Sequence[StoredDefinition], _gone: Collection[str]) -> None:
    """Store nothing."""


def test_pins_per_source_are_bounded() -> None:
    stored: set[str] = set()

    def keep(fresh: Sequence[StoredDefinition], _gone: Collection[str]) -> None:
        stored.update(each.name for each in fresh)

    pins = Pins((), ["greedy", "poor"], keep, max_pins=10)
    pins.approve({}, {"greedy": "strict", "poor": "strict"})
    for number in range(40):
        pins.look("greedy", {f"greedy:{number}": {"n": number}})
    assert stored == {f"greedy:{number}" for number in range(5)}
    last = {"greedy:39": {"n": 39}}
    assert pins.look("greedy", last) == {"greedy:39": PinChange("greedy:39", "", seal({"n": 39}), "strict")}
    assert pins.look("poor", {"poor:1": {}, "poor:2": {}}) == {}
    assert {"poor:1", "poor:2"} < stored
    pins.approve({}, {"greedy": "notify"})
    assert pins.look("greedy", last) == {}
    pins.approve({"greedy:39": seal({"n": 39})}, {"greedy": "strict"})
    assert pins.look("greedy", last) == {}


# --- any change at all ---

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=6), values, max_size=3)},
    optional={"required": st.lists(st.text(max_size=6), max_size=2), "$defs": values},
)
definitions = st.fixed_dictionaries(
    {"name": st.just("read"), "description": st.text(max_size=20), "inputSchema": schemas},
    optional={
        "title": st.text(max_size=8),
        "outputSchema": schemas,
        "annotations": st.fixed_dictionaries({"readOnlyHint": st.booleans()}, optional={"title": st.text()}),
        "icons": st.lists(st.fixed_dictionaries({"src": st.text(max_size=8)}), max_size=2),
        "_meta": values,
    },
)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key in a value, however deep."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys += value
    elif isinstance(value, list):
        keys += range(len(value))  # pyright: ignore[reportUnknownArgumentType]
    for key in keys:
        yield value, key
        yield from _places(value[key])


@st.composite
def mutated(draw: st.DrawFn) -> tuple[JsonObject, JsonObject]:
    """A definition and a copy with one part replaced, removed, renamed or added."""
    definition = draw(definitions)
    other = deepcopy(definition)
    holder, key = draw(st.sampled_from(list(_places(other))))
    how = draw(st.sampled_from(["replace", "remove", "rename", "add"]))
    if how == "replace":
        old = _text(holder[key])
        holder[key] = draw(values.filter(lambda new: _text(new) != old))
    elif how == "remove":
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, draw(values))  # pyright: ignore[reportUnknownMemberType]
    elif how == "rename":
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[draw(st.text(max_size=8).filter(lambda new: new not in holder))] = draw(values)
    return definition, other


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("I5")
@settings(max_examples=500)
@given(mutated())
@pytest.mark.check(11)
def test_any_single_change_hides_a_strictly_pinned_tool(pair: tuple[JsonObject, JsonObject]) -> None:
    definition, other = pair
    assert seal(definition) != seal(other)
    pinned = PinnedCatalog("strict")
    raw = Offer(tools=[a_tool(NAME)], definitions={NAME: definition})
    pinned.catalog.replace("files", raw)
    assert pinned.visible()
    pinned.catalog.replace("files", Offer(tools=[a_tool(NAME)], definitions={NAME: other}))
    assert not pinned.visible()
    pinned.catalog.replace("files", raw)
    assert pinned.visible()


def _shuffled(value: Any, random: Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(each, random) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    keys: list[str] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    random.shuffle(keys)
    return {key: _shuffled(value[key], random) for key in keys}


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("I5")
@settings(max_examples=500)
@given(definitions, st.randoms(use_true_random=False))
@pytest.mark.check(11)
def test_key_order_is_no_change(definition: JsonObject, random: Random) -> None:
    pinned = PinnedCatalog("strict")
    for each in (definition, _shuffled(definition, random), json.loads(json.dumps(definition))):
        pinned.catalog.replace("files", Offer(tools=[a_tool(NAME)], definitions={NAME: each}))
        assert pinned.visible()
    assert len(pinned.heard) == 1


@pytest.mark.requirement("I5")
def test_removed_tool_keeps_only_hashes() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer({"name": "ask"}, source="other")
    pinned.offer(FIRST)
    pinned.offer({"name": "write"})
    kept = pinned.stored[NAME]
    assert (kept.definition, kept.seal, kept.trusted) == ({}, seal(FIRST), seal(FIRST))
    assert pinned.stored["files:write"].definition == {"name": "write"}
    assert pinned.stored["other:ask"].definition == {"name": "ask"}
    pinned.offer(SECOND)
    assert pinned.changes == [PinChange(NAME, seal(FIRST), seal(SECOND), "strict")]
    assert pinned.stored[NAME].definition == SECOND


def test_returned_tool_is_stored_whole_again() -> None:
    pinned = PinnedCatalog("strict")
    pinned.offer(FIRST)
    pinned.offer({"name": "write"})
    pinned.offer(FIRST)
    assert (pinned.stored[NAME].definition, pinned.changes) == (FIRST, [])
