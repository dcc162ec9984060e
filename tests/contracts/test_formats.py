"""The contract of provider formats: calls are parsed, one reply per call."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.dialogues import DIALOGUES, Dialogue, Reply, Said
from tests.contracts.drawn import IDS, NAMES, OBJECTS, results, spoiled, tools
from tests.contracts.rules import faults
from toolcrib.errors import Refused, problem
from toolcrib.formats import PROVIDERS
from toolcrib.interfaces import Provider, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Problem, Result, Tool

pytestmark = pytest.mark.requirement("F2")

GOLDEN = Path(__file__).parent / "golden"
SPOKEN: dict[str, Dialogue] = {name: each for name, each in DIALOGUES.items() if name in PROVIDERS}
SPELLED = [name for name, each in SPOKEN.items() if each.spelled]
PLAIN = [name for name, each in SPOKEN.items() if not each.spelled]
PARALLEL = [name for name, each in SPOKEN.items() if each.parallel]
TAKING_BACK = [name for name, each in SPOKEN.items() if each.cancels is not None]
BOUNDED = [name for name in SPOKEN if PROVIDERS[name].bounds.result_bytes is not None]
every = pytest.mark.parametrize("name", SPOKEN)

TOOL = Tool(
    name="ledger:post-entry",
    source="ledger",
    family="mcp",
    description="Post an entry.",
    input_schema={
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "description": "In cents."},
            "text": {"type": "string", "description": "What for."},
        },
        "required": ["amount"],
    },
)
WENT = Result(data={"entry": 7, "note": "für Ägypten"}, message="Posted entry 7.")
FAILED = Result(
    problem=problem("TOOL_FAILED", "The ledger is closed."), message="The ledger is closed, I'm afraid."
)


def asked(name: str, *calls: Said) -> tuple[ProviderCall, ...]:
    return PROVIDERS[name].calls(SPOKEN[name].asks(calls))


def replied(name: str, *answers: ProviderResult) -> list[Reply]:
    """What the provider reads of our replies, which are JSON."""
    spelled: Any = PROVIDERS[name].results(answers)
    assert json.loads(json.dumps(spelled)) == spelled
    replies = SPOKEN[name].replies(spelled)
    if SPOKEN[name].ids:
        return replies
    assert [(each.id, each.name) for each in replies] == [("", each.call.name) for each in answers]
    return [replace(reply, id=each.call.id) for reply, each in zip(replies, answers, strict=True)]


def test_every_format_is_covered() -> None:
    assert PROVIDERS.keys() == DIALOGUES.keys()


# --- shapes ---


@every
def test_declarations_match_the_golden_files(name: str) -> None:
    provider, file = PROVIDERS[name], GOLDEN / f"{name}.json"
    message = SPOKEN[name].asks(
        [Said(id="call_1", name="post_entry", arguments={"amount": 5, "text": "tea"})]
    )
    (call,) = provider.calls(message)
    shapes = {
        "tools": provider.tools([provider.tool(TOOL, "post_entry")]),
        "message": message,
        "went": provider.results([ProviderResult(call=call, result=WENT)]),
        "failed": provider.results([ProviderResult(call=call, result=FAILED)]),
    }
    assert shapes == json.loads(file.read_text(encoding="utf-8"))
    assert (call.id, call.name, dict(call.arguments)) == (
        "call_1",
        "post_entry",
        {"amount": 5, "text": "tea"},
    )


@every
def test_a_tool_without_arguments_is_declared(name: str) -> None:
    declared: Any = PROVIDERS[name].tool(Tool(name="here:now", source="here"), "now")
    assert SPOKEN[name].declared(declared)["name"] == "now"
    assert faults(name, declared) == []
    assert PROVIDERS[name].losses(Tool(name="here:now", source="here")) == ()


@every
def test_declaration_follows_the_current_tool(name: str) -> None:
    provider = PROVIDERS[name]
    before = Tool(name="here:look", source="here", description="Look.", fingerprint="one")
    properties = {"where": {"type": "string", "description": "At what."}}
    after = Tool(
        name="here:look",
        source="here",
        description="Look well.",
        input_schema={"type": "object", "properties": properties},
        fingerprint="two",
    )
    assert provider.tool(before, "look") == provider.tool(before, "look")
    assert "where" not in json.dumps(provider.tool(before, "look"))
    assert "where" in json.dumps(provider.tool(after, "look"))
    assert "Look well." in json.dumps(provider.tool(after, "look"))


@pytest.mark.requirement("F1")
@every
def test_description_names_the_source_except_in_mcp(name: str) -> None:
    declared: Any = PROVIDERS[name].tool(TOOL, "post_entry")
    said = "Post an entry." if name == "mcp" else "[MCP:ledger] Post an entry."
    assert SPOKEN[name].declared(declared)["description"] == said


@pytest.mark.no_cover
@pytest.mark.slow
@given(tool=tools(), safe=NAMES)
@settings(max_examples=200)
def test_declarations_keep_the_provider_rules(tool: Tool, safe: str) -> None:
    for name, provider in PROVIDERS.items():
        declared: Any = provider.tool(tool, safe)
        assert json.loads(json.dumps(declared)) == declared
        assert (name, faults(name, declared)) == (name, [])
        assert declared == provider.tool(tool, safe)


# --- calls ---


@pytest.mark.slow
@given(tool=tools(), safe=NAMES, call_id=IDS, arguments=OBJECTS)
@settings(max_examples=100)
def test_declared_tool_can_be_called(tool: Tool, safe: str, call_id: str, arguments: dict[str, Any]) -> None:
    for name, provider in PROVIDERS.items():
        declared: Any = provider.tool(tool, safe)
        told = SPOKEN[name].declared(declared)["name"]
        (call,) = asked(name, Said(id=call_id, name=told, arguments=arguments))
        assert (call.id, call.name, call.arguments, call.problem) == (call_id, safe, arguments, None)
        (reply,) = replied(name, ProviderResult(call=call, result=WENT))
        assert (reply.id, reply.failed) == (call_id, False)
        assert reply.name in (None, safe)


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("name", PARALLEL)
def test_several_calls_are_answered_in_order(name: str) -> None:
    said = [Said(id=f"call_{n}", name=f"tool_{n % 3}", arguments={"n": n}) for n in range(20)]
    calls = asked(name, *said)
    assert [(each.id, each.name, dict(each.arguments)) for each in calls] == [
        (each.id, each.name, each.arguments) for each in said
    ]
    outcomes = [WENT if n % 2 else FAILED for n in range(20)]
    replies = replied(
        name, *(ProviderResult(call=call, result=each) for call, each in zip(calls, outcomes, strict=True))
    )
    assert [(each.id, each.failed) for each in replies] == [
        (call.id, each.problem is not None) for call, each in zip(calls, outcomes, strict=True)
    ]


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize(
    "text", ['{"amount": ', "amount=5", "[1, 2]", "7", '"five"', "{'amount': 5}", "\ud800"]
)
def test_arguments_that_are_no_object_are_answered(name: str, text: str) -> None:
    (call,) = asked(name, Said(id="call_1", name="post_entry", arguments=text))
    assert call.problem is not None
    assert (call.problem.code, call.problem.path) == ("INVALID_ARGUMENTS", "arguments")
    assert (call.id, call.name, call.arguments) == ("call_1", "post_entry", {})
    (reply,) = replied(name, ProviderResult(call=call, result=Result(problem=call.problem)))
    assert (reply.id, reply.failed) == ("call_1", True)


def test_malformed_arguments_say_where() -> None:
    (call,) = asked("openai_chat", Said(id="1", name="x", arguments='{"amount": 5,\n "text" "tea"}'))
    assert call.problem is not None
    assert "line 2" in call.problem.message


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("given_", [[1, 2], 7, True, "five", "[1]"])
def test_arguments_of_another_kind_are_answered(name: str, given_: Any) -> None:
    (call,) = asked(name, Said(id="call_1", name="post_entry", arguments=given_))
    assert call.problem is not None
    assert call.problem.code == "INVALID_ARGUMENTS"
    (reply,) = replied(name, ProviderResult(call=call, result=Result(problem=call.problem)))
    assert (reply.id, reply.failed) == ("call_1", True)


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("name", PLAIN)
def test_object_arguments_may_be_json_text(name: str) -> None:
    (call,) = asked(name, Said(id="call_1", name="post_entry", arguments='{"amount": 5}'))
    assert (call.arguments, call.problem) == ({"amount": 5}, None)


@every
@pytest.mark.parametrize("nothing", [None, "", {}])
def test_no_arguments_are_an_empty_object(name: str, nothing: Any) -> None:
    given_ = "" if nothing is None and SPOKEN[name].spelled else nothing
    (call,) = asked(name, Said(id="call_1", name="now", arguments=given_))
    assert (call.arguments, call.problem) == ({}, None)


@every
def test_unicode_text_round_trips(name: str) -> None:
    words = {"名前": "Zoë 😀 \u2028 \u0000 \u202eolleh", "nested": [{"ключ": "значение"}]}
    (call,) = asked(name, Said(id="çall–1", name="post_entry", arguments=words))
    assert (call.id, call.arguments) == ("çall–1", words)
    (reply,) = replied(name, ProviderResult(call=call, result=Result(data=words, message="Привет, Zoë 😀")))
    assert reply.id == "çall–1"
    assert "Привет, Zoë 😀" in json.dumps(reply.said, ensure_ascii=False)


@every
@pytest.mark.parametrize("message", [{}, {"role": 7}, {"surely": "nothing"}, {"type": 7}, {"type": None}])
def test_invalid_provider_message_has_a_path(name: str, message: Any) -> None:
    with pytest.raises(Refused) as refused:
        PROVIDERS[name].calls(message)
    assert refused.value.problem.code == "INVALID_REQUEST"
    assert (refused.value.problem.path or "").startswith("message")


@every
@given(chance=st.data())
@settings(max_examples=25)
def test_mutated_message_is_parsed_or_refused(name: str, chance: st.DataObject) -> None:
    message = SPOKEN[name].asks([Said(id="call_1", name="post_entry", arguments={"amount": 5})])
    broken = spoiled(chance.draw, message)
    for read in (PROVIDERS[name].calls, PROVIDERS[name].cancelled):
        why = refusal(read, broken)
        assert why is None or (why.code, (why.path or "")[:7]) == ("INVALID_REQUEST", "message")


def refusal(read: Callable[[JsonObject], object], message: JsonObject) -> Problem | None:
    try:
        read(message)
    except Refused as error:
        return error.problem
    return None


# --- cancellations ---


@pytest.mark.parametrize("name", TAKING_BACK)
def test_cancellation_names_its_calls(name: str) -> None:
    cancels = SPOKEN[name].cancels
    assert cancels is not None
    ids = [f"call_{n}" for n in range(3 if SPOKEN[name].parallel else 1)]
    message = cancels(ids)
    assert PROVIDERS[name].cancelled(message) == tuple(ids)
    assert PROVIDERS[name].calls(message) == ()


@every
def test_calls_cancel_nothing(name: str) -> None:
    message = SPOKEN[name].asks([Said(id="call_1", name="post_entry")])
    assert PROVIDERS[name].cancelled(message) == ()


# --- results ---


@every
def test_unknown_tool_is_answered(name: str) -> None:
    (call,) = asked(name, Said(id="call_1", name="no_such_tool"))
    unknown = Result(problem=problem("TOOL_NOT_FOUND", "no tool no_such_tool"), message="I do not have that.")
    (reply,) = replied(name, ProviderResult(call=call, result=unknown))
    assert (reply.id, reply.failed) == ("call_1", True)


@every
def test_message_is_always_in_the_reply(name: str) -> None:
    (call,) = asked(name, Said(id="call_1", name="post_entry"))
    for outcome in (WENT, FAILED):
        (reply,) = replied(name, ProviderResult(call=call, result=outcome))
        assert outcome.message in json.dumps(reply.said)


@pytest.mark.requirement("G2", "G3")
def test_caps_and_speaking_side_per_provider() -> None:
    caps = {name: each.bounds.result_bytes for name, each in PROVIDERS.items() if name in BOUNDED}
    openai = dict.fromkeys(("openai_chat", "openai_responses", "openai_realtime", "deepgram"), 12_000)
    live = dict.fromkeys(("gemini_live", "gemini_live_vertex"), 8_000)
    assert caps == openai | live
    speaking = {name for name, each in PROVIDERS.items() if each.bounds.owns_audio}
    assert speaking == {*live, "openai_realtime", "deepgram", "elevenlabs"}


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.slow
@given(outcome=results())
@settings(max_examples=200)
def test_results_stay_within_the_provider_cap(name: str, outcome: Result) -> None:
    _within(PROVIDERS[name], SPOKEN[name], outcome)


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("piece", ["a", "ü", "😀", '"', "\x00"])
def test_results_are_truncated_between_characters(name: str, piece: str) -> None:
    long = piece * (min(PROVIDERS[name].bounds.result_bytes or 0, 1 << 20) + 10)
    _within(PROVIDERS[name], SPOKEN[name], Result(data=None, message=long))
    _within(PROVIDERS[name], SPOKEN[name], Result(data={"destination": long}, message="Done."))


def _within(provider: Provider, dialogue: Dialogue, outcome: Result) -> None:
    most = provider.bounds.result_bytes
    assert most is not None
    (call,) = provider.calls(dialogue.asks([Said(id="call_1", name="post_entry")]))
    spelled = provider.results([ProviderResult(call=call, result=outcome)])
    if outcome.voice.suppress and provider.name == "openai_realtime":
        spelled.append({"type": "response.create"})  # no response.create follows
    (reply,) = dialogue.replies(json.loads(json.dumps(spelled)))
    assert reply.size <= most
    assert reply.failed == (outcome.problem is not None)
