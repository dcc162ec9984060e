"""Calls of LangChain tools: what goes in, where it runs, and what becomes of every kind of answer."""

import threading
from typing import Any

import anyio
import pytest

from tests.sdk.chains import Blocking, Chain, ToolException, ToolMessage
from tests.sources.calling import run
from toolcrib import Crib
from toolcrib.errors import Broken, Failed
from toolcrib.model import Result
from toolcrib.sdk import ToolContext
from toolcrib.sdk.langchain import MAX_TOOL_ERROR_CHARS, is_a, langchain_result, langchain_tool
from toolcrib.testing import a_caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B4")]

RED = "iVBORw0KGgo="
TEXT = {"type": "text", "text": "Here."}
IMAGE = {"type": "image", "data": RED, "mimeType": "image/png"}


def saying(error: Exception) -> Any:
    def give(asked: Any) -> Any:
        raise error

    return give


# --- how it is asked ---


async def test_tool_receives_arguments_and_user() -> None:
    chain = Chain()
    await run(langchain_tool(chain), {"city": {"name": "Bonn"}}, caller=a_caller(user="u1"))
    assert chain.asked == [{"city": {"name": "Bonn"}}]
    context = chain.config[0]["configurable"]["toolcrib"]
    assert isinstance(context, ToolContext)
    assert context.user_id == "u1"


@pytest.mark.parametrize(
    "chain",
    [
        Chain(response_format="content_and_artifact"),
        Chain(handle_tool_error=True),
        Chain(handle_validation_error="no"),
    ],
)
async def test_tool_with_artifact_is_called_with_tool_call(chain: Chain) -> None:
    await run(langchain_tool(chain, name="other"), {"a": 1})
    await run(langchain_tool(chain, name="other"), {"a": 1})
    first, second = chain.asked
    assert {**first, "id": ""} == {"type": "tool_call", "id": "", "name": "look_up", "args": {"a": 1}}
    assert first["id"] != second["id"]


async def test_arguments_that_look_like_a_call_are_not_taken_for_one() -> None:
    chain = Chain()
    await run(langchain_tool(chain), {"type": "tool_call", "args": {"x": 1}})
    assert chain.asked[0]["args"] == {"type": "tool_call", "args": {"x": 1}}


@pytest.mark.parametrize(
    "kind,coroutine,aside", [(Blocking, None, True), (Blocking, len, False), (Chain, None, False)]
)
async def test_only_a_plain_function_gets_a_thread(kind: type[Chain], coroutine: Any, aside: bool) -> None:
    made = langchain_tool(kind(give=lambda _: threading.get_ident(), coroutine=coroutine))
    assert made.is_async is not aside
    if aside:
        assert (await run(made)).data != threading.get_ident()


# --- what comes out ---


@pytest.mark.parametrize(
    "given,data",
    [
        ("text", "text"),
        ("[1, 2]", "[1, 2]"),
        (7, 7),
        ({"a": (1, None)}, {"a": [1, None]}),
        ([], []),
        ([{"type": "file", "path": "a.txt"}], [{"type": "file", "path": "a.txt"}]),
        ([{"type": ["text"]}], [{"type": ["text"]}]),
        ([TEXT, 7], [TEXT, 7]),
        (float("nan"), None),
        (b"\xff", "_w=="),
        ({"x": Chain}, {"x": str(Chain)}),
        (None, ""),
    ],
)
async def test_a_value_is_the_data(given: Any, data: Any) -> None:
    result = langchain_result(given)
    assert result == Result(data="" if data is None else data)


def image(**fields: Any) -> dict[str, Any]:
    return {"type": "image", **fields}


@pytest.mark.parametrize(
    "given,block",
    [
        (TEXT, TEXT),
        ({**TEXT, "id": "1"}, TEXT),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{RED}"}},
            image(data=RED, mimeType="image/jpeg"),
        ),
        ({"type": "image_url", "image_url": f"data:image/png;base64,{RED}"}, IMAGE),
        (image(base64=RED, mime_type="image/gif"), image(data=RED, mimeType="image/gif")),
        (image(source_type="base64", data=RED), IMAGE),
        (image(source={"type": "base64", "media_type": "image/png", "data": RED}), IMAGE),
        (
            image(url="https://a.example/b.png", mime_type="image/png"),
            {
                "type": "resource_link",
                "uri": "https://a.example/b.png",
                "name": "b.png",
                "mimeType": "image/png",
            },
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://a.example/"}},
            {"type": "resource_link", "uri": "https://a.example/", "name": "a.example"},
        ),
        (
            image(url="data:image/svg+xml,<svg/>"),
            {"type": "resource_link", "uri": "data:image/svg+xml,<svg/>", "name": "image"},
        ),
        ({"type": "audio", "base64": RED}, {"type": "audio", "data": RED, "mimeType": "audio/wav"}),
        (
            {"type": "file", "file": {"file_data": f"data:text/csv;base64,{RED}", "filename": "a b.csv"}},
            {
                "type": "resource",
                "resource": {"uri": "attachment:a%20b.csv", "mimeType": "text/csv", "blob": RED},
            },
        ),
        (
            {"type": "file", "base64": RED},
            {
                "type": "resource",
                "resource": {
                    "uri": "attachment:file",
                    "mimeType": "application/octet-stream",
                    "blob": RED,
                },
            },
        ),
    ],
)
async def test_blocks_of_any_spelling_become_ours(given: Any, block: Any) -> None:
    bare, said = langchain_result([given]), langchain_result(ToolMessage([given]))
    assert bare.content == said.content == (block,)
    assert (bare.data, bare.structured) == ("Here." if block == TEXT else [block], False)


@pytest.mark.parametrize("given", [{"type": "json", "json": {"a": 1}}, image(), image(source=[1]), {"a": 1}])
async def test_a_block_that_only_its_vendor_knows_is_shown_as_it_is(given: Any) -> None:
    result = langchain_result(ToolMessage([given, "and"]))
    (shown, text) = result.content
    assert shown["type"] == "text"
    assert text == {"type": "text", "text": "and"}
    assert result.data == f"{shown['text']}\nand"


async def test_message_text_is_returned_and_json_text_is_parsed() -> None:
    assert langchain_result(ToolMessage("Here.")) == Result(data="Here.", content=(TEXT,), structured=False)
    assert langchain_result(ToolMessage('{"a": [1]}')) == Result(data={"a": [1]}, structured=False)
    assert langchain_result(ToolMessage("")) == Result(data="", structured=False)
    assert langchain_result(ToolMessage("42")).data == "42"
    deep = "[" * 80 + "]" * 80
    assert langchain_result(ToolMessage(deep)).data == deep
    assert langchain_result(ToolMessage("[1,")).data == "[1,"
    many = f"[{'0,' * 100_001}0]"
    assert langchain_result(ToolMessage(many)).data == many


async def test_an_artifact_that_is_json_is_the_data_beside_the_content() -> None:
    assert langchain_result(ToolMessage("Here.", {"a": (1,)})) == Result(data={"a": [1]}, content=(TEXT,))
    adapted = ToolMessage([TEXT], {"structured_content": {"a": 1}})
    assert langchain_result(adapted) == Result(data={"a": 1}, content=(TEXT,))
    assert langchain_result(ToolMessage("Here.", object())).data == "Here."


async def test_several_messages_are_one_answer() -> None:
    result = langchain_result([ToolMessage("Here.", {"a": 1}), ToolMessage([IMAGE])])
    assert result.content == (TEXT, IMAGE)
    assert result.data == [TEXT, IMAGE]


async def test_half_a_character_breaks_the_contract() -> None:
    for content in ("\ud800", [{"type": "json", "json": "\ud800"}]):
        with pytest.raises(Broken, match="UTF-8"):
            langchain_result(ToolMessage(content))


# --- what goes wrong ---


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("kind", [Chain, Blocking])
@pytest.mark.parametrize(
    "said,message",
    [
        ("not today", "not today"),
        ("", "the tool failed without a reason"),
        ("x" * 5_000, f"{'x' * (MAX_TOOL_ERROR_CHARS - 1)}…"),
        ("half \ud800", "half ?"),
    ],
)
async def test_tool_exception_keeps_its_message(kind: type[Chain], said: str, message: str) -> None:
    class Refusal(ToolException):
        pass

    with pytest.raises(Failed) as caught:
        await run(langchain_tool(kind(give=saying(Refusal(said)))))
    assert (caught.value.problem.code, caught.value.problem.message) == ("TOOL_FAILED", message)
    assert caught.value.__cause__ is None


async def test_an_error_that_was_made_into_an_answer_is_one_still() -> None:
    result = langchain_result(ToolMessage([TEXT, {"type": "image", "base64": RED}], status="error"))
    assert result.problem is not None
    assert (result.problem.code, result.problem.message) == ("TOOL_FAILED", "Here.")
    assert result.content == (TEXT, IMAGE)
    assert result.data is None


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("kind", [Chain, Blocking])
async def test_other_exceptions_are_handler_errors(kind: type[Chain]) -> None:
    with pytest.raises(Failed) as caught:
        await run(langchain_tool(kind(give=saying(ValueError("password=hunter2")))))
    assert caught.value.problem.code == "HANDLER_ERROR"
    assert "hunter2" not in caught.value.problem.message
    assert isinstance(caught.value.__cause__, ValueError)


def test_class_tool_uses_its_name() -> None:
    assert is_a(ToolException("x"), "ToolException")
    assert is_a(ToolException, "ToolException")
    assert not is_a("ToolException", "ToolException")


# --- behind the gateway ---


async def test_langchain_tool_passes_the_pipeline_of_untrusted_tools() -> None:
    async def forever(input: Any, config: Any = None) -> Any:
        await anyio.sleep_forever()

    chain = Chain(name="wait")
    chain.ainvoke = forever
    tools = [
        langchain_tool(chain, timeout=0.01),
        langchain_tool(chain, name="look", category="query", timeout=0.01),
        langchain_tool(Chain(give=lambda _: [TEXT, IMAGE], args_schema={}), category="query"),
    ]
    async with Crib(tools=tools) as crib:
        steps = crib.explain("wait")["steps"]
        assert {"retry", "breaker", "bulkhead", "activate", "attempt"} <= set(steps)
        lost, late = await crib.call("wait"), await crib.call("look")
        assert lost.problem is not None
        assert late.problem is not None
        assert (lost.problem.code, late.problem.code) == ("OUTCOME_UNKNOWN", "TIMEOUT")
        found = await crib.call("look_up", {"city": "Bonn"})
        assert (found.message, found.content) == ("Here.", (TEXT, IMAGE))
        assert found.hints is not None
