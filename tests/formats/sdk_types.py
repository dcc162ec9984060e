"""A program for the environment that has the providers' SDKs: judges JSON by their own types, with equality.

Types of theirs drop what they do not know, or keep it without a look: what comes out must be what went in,
and nothing of it may be unknown to them.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from anthropic import types as anthropic
from deepgram import types as deepgram
from deepgram.agent.v1 import types as agent
from elevenlabs import types as elevenlabs
from google.genai import types as genai
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai.types import chat, realtime, responses
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import BaseModel, TypeAdapter

Judge = Callable[[Any], None]


class Different(Exception):
    """What a type makes of a value is not that value."""


def same(made: Any, given: Any) -> None:
    if made != given:
        raise Different(f"{json.dumps(given)[:2000]} became {json.dumps(made, default=str)[:2000]}")


def typed(kind: Any) -> Judge:
    """Judge by a dictionary with types."""
    adapter = TypeAdapter(kind)
    return lambda given: same(adapter.validate_python(given), given)


def model(kind: type[BaseModel]) -> Judge:
    """Validate with a model; unknown fields are faults."""

    def judge(given: Any) -> None:
        made = kind.model_validate(given)
        unknown = list(extras(made))
        if unknown:
            raise Different(f"{kind.__name__} does not know {unknown}")
        same(made.model_dump(mode="json", by_alias=True, exclude_unset=True), given)

    return judge


def extras(value: Any) -> Iterator[str]:
    """Names of unknown fields at any depth."""
    if isinstance(value, BaseModel):
        yield from (value.model_extra or {})
        for name in type(value).model_fields:
            yield from extras(getattr(value, name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from extras(each)
    elif isinstance(value, list):
        for each in value:
            yield from extras(each)


def each_as(judge: Judge) -> Judge:
    def judged(given: Any) -> None:
        for one in given:
            judge(one)

    return judged


def events(given: Any) -> None:
    """Messages to a Realtime session: items, then response.create."""
    for each in given:
        if each["type"] == "response.create":
            typed(realtime.ResponseCreateEventParam)(each)
        else:
            typed(realtime.ConversationItemCreateEventParam)(each)


def session(given: Any) -> None:
    update = {"type": "session.update", "session": {"type": "realtime", "tools": given}}
    typed(realtime.SessionUpdateEventParam)(update)


def asks_realtime(given: Any) -> None:
    kinds = {
        "response.done": realtime.ResponseDoneEvent,
        "response.output_item.done": realtime.ResponseOutputItemDoneEvent,
        "response.function_call_arguments.done": realtime.ResponseFunctionCallArgumentsDoneEvent,
    }
    model(kinds[given["type"]])(given)


def asks_responses(given: Any) -> None:
    """Validate the items only: the rest of a response has no calls."""
    each_as(model(responses.ResponseFunctionToolCall))(given["output"])


def chained(given: Any) -> None:
    """Make a tool of LangChain's of a declaration, and have LangChain declare it."""
    function = given["function"]
    made = StructuredTool(
        name=function["name"],
        description=function.get("description", ""),
        args_schema=function["parameters"],
        func=lambda **_: None,
    )
    # It drops titles and inlines references; a dictionary reaches the model unchanged.
    declared = convert_to_openai_tool(made)["function"]
    same((declared["name"], declared["description"]), (function["name"], function.get("description", "")))
    same(set(declared["parameters"]["properties"]), set(function["parameters"]["properties"]))
    same(convert_to_openai_tool(given), given)


def content(kind: type[BaseModel]) -> Judge:
    return each_as(model(kind))


def live(given: Any) -> None:
    for each in given:
        (inner,) = each.values()
        model(genai.LiveClientToolResponse)(inner)


def settings(given: Any) -> None:
    audio = {"input": {"encoding": "linear16", "sample_rate": 16000}}
    think = {"provider": {"type": "open_ai", "model": "any"}, "functions": given}
    made = agent.AgentV1Settings.model_validate(
        {"type": "Settings", "audio": audio, "agent": {"think": think}}
    )
    same(json.loads(made.model_dump_json(exclude_unset=True))["agent"]["think"]["functions"], given)


def deepgram_cancels(given: Any) -> None:
    model(agent.AgentV1FunctionCallCancelled)(given)


JUDGES: dict[str, dict[str, Judge]] = {
    "openai_chat": {
        "tool": typed(chat.ChatCompletionFunctionToolParam),
        "message": model(chat.ChatCompletionMessage),
        "replies": each_as(typed(chat.ChatCompletionToolMessageParam)),
    },
    "openai_responses": {
        "tool": typed(responses.FunctionToolParam),
        "message": asks_responses,
        "replies": each_as(typed(FunctionCallOutput)),
    },
    "openai_realtime": {
        "tool": typed(realtime.RealtimeFunctionToolParam),
        "tools": session,
        "message": asks_realtime,
        "cancellation": asks_realtime,
        "replies": events,
    },
    "anthropic": {
        "tool": typed(anthropic.ToolParam),
        "message": lambda given: each_as(
            lambda block: model(anthropic.ToolUseBlock)(block) if block["type"] == "tool_use" else None
        )(given["content"]),
        "replies": lambda given: each_as(typed(anthropic.ToolResultBlockParam))(given[0]["content"]),
    },
    "gemini": {
        "tool": model(genai.FunctionDeclaration),
        "tools": content(genai.Tool),
        "message": model(genai.GenerateContentResponse),
        "replies": content(genai.Content),
    },
    "gemini_live": {
        "tool": model(genai.FunctionDeclaration),
        "tools": lambda given: model(genai.LiveConnectConfig)({"tools": given}),
        "message": model(genai.LiveServerMessage),
        "cancellation": model(genai.LiveServerMessage),
        "replies": live,
    },
    "deepgram": {
        "tool": model(deepgram.ThinkSettingsV1FunctionsItem),
        "tools": settings,
        "message": model(agent.AgentV1FunctionCallRequest),
        "cancellation": deepgram_cancels,
        "replies": each_as(model(agent.AgentV1SendFunctionCallResponse)),
    },
    "elevenlabs": {
        "tool": lambda given: model(elevenlabs.ToolRequestModel)({"tool_config": given}),
    },
    "langchain": {
        "tool": chained,
        "message": model(AIMessage),
        "replies": each_as(model(ToolMessage)),
    },
}
JUDGES["gemini_live_vertex"] = JUDGES["gemini_live"]


def fault(name: str, kind: str, value: Any) -> str | None:
    try:
        JUDGES[name][kind](value)
    except Exception as error:  # noqa: BLE001 - whatever a type raises is its judgement
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    """Judge [format, kind, value], one a line; at an empty line tell how many, and what is wrong."""
    faults, judged = [], 0
    for line in sys.stdin:
        if not line.strip():
            print(json.dumps({"judged": judged, "faults": faults}), flush=True)
            faults, judged = [], 0
            continue
        name, kind, value = json.loads(line)
        if kind not in JUDGES.get(name, {}):
            continue
        judged += 1
        found = fault(name, kind, value)
        if found is not None:
            faults.append({"format": name, "kind": kind, "fault": found[:2000]})


if __name__ == "__main__":
    main()
