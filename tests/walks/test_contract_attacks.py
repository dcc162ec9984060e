"""What a hostile caller, neighbour or author tries on the tool contract, and what comes of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field

from tests.gateways import open_gateway
from tests.sdk.chains import Chain
from toolcrib import Crib, hints
from toolcrib.catalog.catalog import index_names
from toolcrib.demo.flashcards import flashcards
from toolcrib.errors import BusinessRuleError
from toolcrib.gateway.completion import HintCache
from toolcrib.gateway.related_tools import NO_RELATED_TOOLS
from toolcrib.interfaces import ReplayRow, ReplayTotals, StoredReplays
from toolcrib.model import Call, Caller, Deprecation, Result
from toolcrib.sdk import AnyTool, BrandedId, DateRange, ToolDefinitionError, ToolResult, create_tool, tool
from toolcrib.sdk.langchain import langchain_tool
from toolcrib.sources.mcp.call_results import result_of
from toolcrib.steps.replay import Replay
from toolcrib.store import open_store
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.anyio

LONG = "k" * 200_000
HALF = "\ud800"


@create_tool(category="query", tags=["shelf"])
async def look() -> dict[str, int]:
    """Look."""
    return {"found": 1}


# --- what one tool does to the answers of another ---


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    "params", [{"n": 2**70}, {"n": {1: "a"}}, {"n": date(2030, 1, 1)}, {"n": Decimal(1)}, {"n": HALF}]
)
def test_an_example_that_no_face_could_write_is_refused(params: dict[str, Any]) -> None:
    def take(n: Any) -> None:
        """Take."""

    shown = [{"description": "One", "params": params, "expectedResult": 1}]
    with pytest.raises(ToolDefinitionError, match="example 1 is not JSON"):
        create_tool(take, examples=shown)


@pytest.mark.requirement("E9")
@pytest.mark.parametrize("said", [{"title": HALF}, {"description": HALF}, {"tags": ["shelf", HALF]}])
async def test_unserializable_tool_is_omitted_from_the_list(
    said: dict[str, Any],
) -> None:
    options: dict[str, Any] = {"category": "query", "tags": ["shelf"], **said}
    bad = create_tool(lambda: 1, name="bad-one", **options)
    async with open_gateway(tools=[bad, look]) as crib:
        assert (await crib.call("look")).status == 200
        listed = await crib.request("GET", "/api/tools")
        assert "tools:bad-one" not in {each["name"] for each in listed.json["tools"]}


@pytest.mark.requirement("E9")
async def test_related_tool_with_long_title_keeps_hints_valid() -> None:
    wordy = create_tool(lambda: 1, name="wordy-one", category="query", tags=["shelf"], title="t" * 4_000)
    async with Crib(tools=[wordy, look], env={}) as crib:
        await crib.call("look")
        await crib.call("wordy-one")
        crib.runtime.console.journal.drain()
        told = (await crib.call("look")).hints
        assert told is not None
        assert told.related_resources
        assert not hints.faults(told)


# --- what a caller chooses ---


@pytest.mark.requirement("E10")
async def test_oversized_name_is_not_echoed_in_error_or_hints() -> None:
    @create_tool(category="query")
    def take(spans: dict[str, DateRange]) -> int:
        """Take."""
        return len(spans)

    backwards = {"from": "2030-01-02", "to": "2030-01-01"}
    async with Crib(tools=[take], env={}) as crib:
        result = await crib.call("take", {"spans": {LONG: backwards}})
        assert result.problem is not None
        assert result.hints is not None
        assert result.problem.code == "INVALID_ARGUMENTS"
        assert len(result.problem.message) < 3_000
        assert not hints.faults(result.hints)
        assert len(result.hints.encoded) < 3_000


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    "alias", ["own", AliasChoices("other", "own"), AliasChoices(AliasPath("own", 0), "x")]
)
def test_langchain_injected_arguments_are_not_settable_by_alias(alias: Any) -> None:
    class Taken(BaseModel):
        text: str
        owner: str = Field(default="nobody", validation_alias=alias)

    shown = {"type": "object", "properties": {"text": {"type": "string"}}}
    made = langchain_tool(Chain(args_schema=Taken, tool_call_schema=shown))
    given = made.signature.convert({"text": "a", "owner": "me", "own": "me", "more": 1})
    assert given == {"arguments": {"text": "a", "more": 1}}


# --- who may know what ---


def _replaced(answer: object) -> AnyTool:
    gone = {"since": "1.0.0", "replacement": "open-vault"}
    return create_tool(lambda: answer, name="old-one", category="query", deprecated=gone)


@pytest.mark.requirement("E13")
@pytest.mark.parametrize("answer", [{"a": 1}, ToolResult(data=1, hints=hints.found(1))])
async def test_replacement_is_named_only_to_those_who_see_it(answer: object) -> None:
    vault = create_tool(lambda: 1, name="open-vault", category="query", permissions=["vault:open"])
    async with open_gateway(tools=[vault, _replaced(answer)]) as crib:
        for name, permissions in (("outsider", []), ("insider", ["vault:open"])):
            key = await crib.key(name, permissions=permissions)
            told = (await crib.call("old-one", key=key)).json["agentHints"]
            assert [each["type"] for each in told["warnings"]] == ["deprecation"]
            assert ("open-vault" in str(told)) is (name == "insider")


class Noting:
    """A real store that shows which rows are claimed in it."""

    def __init__(self, replays: StoredReplays) -> None:
        self._replays, self.rows = replays, list[ReplayRow]()

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        self.rows.append(row)
        return await self._replays.claim(row, since=since)

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        return await self._replays.find(key, since=since)

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        return await self._replays.shorten(owner, size, answer)

    async def totals(self) -> Mapping[str, ReplayTotals]:
        return await self._replays.totals()

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        return await self._replays.finish(key, call, answer, size)

    async def release(self, key: str, call: str) -> bool:
        return await self._replays.release(key, call)

    async def prune(self, before: float) -> int:
        return await self._replays.prune(before)


@pytest.mark.requirement("E12")
@pytest.mark.check(6)
async def test_replay_key_is_per_credential_and_stores_no_arguments() -> None:
    store = await open_store("sqlite://")
    noting, pay = Noting(store.replays), a_tool("bank:pay", category="mutation")
    stage = Replay(noting, "here", lambda _: False).fit(pay)
    assert stage is not None
    done: list[str] = []

    async def carry_out(call: Call) -> Result:
        done.append(call.caller.key)
        return Result(data=1)

    for number, (credential, key) in enumerate(
        (("phone", "a"), ("desk", "a"), ("phone", "a"), ("phone", "b"))
    ):
        caller = Caller(id="user:u", user="u", key=credential)
        await stage(a_call(pay, id=f"c{number}", caller=caller, idempotency_key=key), carry_out)
    await store.close()
    assert done == ["phone", "desk", "phone"]
    # The same request under another key has another hash, so nobody can keep a list of likely ones.
    assert len({row.body for row in noting.rows}) == 2


# --- what changes while something runs ---


@pytest.mark.requirement("E13")
async def test_late_call_does_not_restore_hints_of_changed_tool() -> None:
    begun, end = anyio.Event(), anyio.Event()

    @create_tool(category="query")
    async def wait() -> int:
        """Wait."""
        begun.set()
        await end.wait()
        return 1

    async with Crib(tools=[wait], env={}) as crib:
        gateway = crib.runtime.gateway
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crib.call, "wait")
            await begun.wait()
            snapshot = crib.runtime.console.catalog.snapshot
            gone = replace(snapshot.tools["tools:wait"], deprecated=Deprecation(since="2.0.0"))
            tools = {**snapshot.tools, gone.name: gone}
            gateway.adopt(
                replace(snapshot, tools=tools, spellings=index_names(tools.values(), snapshot.contested))
            )
            end.set()
        told = (await crib.call("wait")).hints
        assert told is not None
        assert [each.type for each in told.warnings] == ["deprecation"]


@pytest.mark.requirement("E8")
def test_a_clock_ahead_of_ours_makes_nothing_fresher_than_fresh() -> None:
    known = HintCache(a_tool(category="query", cache_ttl=10.0))
    now, ahead = (
        known.hints(Result(data=1, cached=True, made=made), (1.0, 0.0, 0), 1000.0, (), NO_RELATED_TOOLS)
        for made in (1000.0, 1500.0)
    )
    assert now.evidence is not None
    assert ahead.evidence is not None
    assert ahead.evidence.freshness == now.evidence.freshness == 1.0


# --- what others claim ---


@pytest.mark.requirement("E6")
def test_server_cannot_set_gateway_metadata() -> None:
    meta = {"toolcrib/error": {"code": "X"}, "toolcrib/replayed": True, "vendor/x": 1}
    answer = {"content": [{"type": "text", "text": "hi"}], "_meta": meta}
    assert result_of(answer, a_tool(family="mcp")).meta == {"vendor/x": 1}


@pytest.mark.requirement("E11")
async def test_retryable_is_always_a_boolean() -> None:
    maybe: Any = "perhaps"

    @create_tool(category="query")
    def refuse() -> int:
        """Refuse."""
        raise BusinessRuleError("NO", "no", retryable=maybe)

    async with Crib(tools=[refuse], env={}) as crib:
        result = await crib.call("refuse")
        assert result.problem is not None
        assert result.problem.code == "CONTRACT_VIOLATION"


@pytest.mark.requirement("E4")
def test_unsupported_pattern_refuses_the_tool() -> None:
    class OddId(BrandedId, pattern=r"^(?!a)b$"):
        """An id by a pattern that looks ahead."""

    def take(odd: OddId) -> None:
        """Take."""

    with pytest.raises(ToolDefinitionError, match="look-around"):
        create_tool(take)


@pytest.mark.requirement("E1a")
def test_blanks_do_not_make_a_description() -> None:
    def get_card() -> None:
        """Get."""

    with pytest.raises(ToolDefinitionError, match="the description has 6 characters"):
        tool(description=f"Use{' ' * 60}it")(get_card)


# --- a clock that is set back ---


@pytest.mark.requirement("E8")
async def test_clock_set_back_does_not_stop_reviews(tmp_path: Path) -> None:
    now = [datetime(2030, 1, 7, 8, tzinfo=UTC)]
    tools = flashcards(tmp_path / "cards.db", clock=lambda: now[0]).get_all()
    async with Crib(tools=tools, env={}) as crib:
        for days, card in (
            (0, "card_ottawa"),
            (-3, "card_ottawa"),
            (0, "card_canberra"),
            (-30, "card_canberra"),
        ):
            now[0] += timedelta(days=days)
            result = await crib.call("review-card", {"cardId": card, "rating": "good", "responseMs": 1000})
            assert result.problem is None
            assert result.data["cardId"] == card
