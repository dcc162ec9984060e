"""The other half of every format, as providers speak it: how a model calls, how our replies are read."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Said:
    """A call in a provider message."""

    id: str
    name: str
    arguments: Any = field(default_factory=dict[str, Any])
    """The arguments; a text is sent as is where arguments are texts."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the provider reads of one reply."""

    id: str
    failed: bool
    said: Any
    """Its text or object."""
    name: str | None = None

    @property
    def size(self) -> int:
        """Bytes of UTF-8 it takes."""
        text = self.said if isinstance(self.said, str) else json.dumps(self.said, ensure_ascii=False)
        return len(text.encode())


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Messages of one provider."""

    asks: Callable[[Sequence[Said]], Object]
    declared: Callable[[Object], Object]
    """Takes a declaration apart: name, description where it has one, schema where it has one."""
    replies: Callable[[Sequence[Object]], list[Reply]]
    cancels: Callable[[Sequence[str]], Object] | None = None
    parallel: bool = True
    """Whether a message may contain several calls."""
    spelled: bool = False
    """Whether arguments are a text."""
    ids: bool = True
    """Whether a reply names its call; otherwise the order decides."""


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _failed(text: str | Object) -> bool:
    said = json.loads(text) if isinstance(text, str) else text
    assert said["status"] in ("success", "error")
    return said["status"] == "error"


# --- OpenAI ---


def _chat_asks(calls: Sequence[Said]) -> Object:
    made = [
        {
            "id": each.id,
            "type": "function",
            "function": {"name": each.name, "arguments": _text(each.arguments)},
        }
        for each in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _chat_replies(messages: Sequence[Object]) -> list[Reply]:
    assert all(each["role"] == "tool" for each in messages)
    return [
        Reply(id=each["tool_call_id"], failed=_failed(each["content"]), said=each["content"])
        for each in messages
    ]


def _items(calls: Sequence[Said]) -> list[Object]:
    return [
        {
            "type": "function_call",
            "id": f"fc_{place}",
            "call_id": each.id,
            "name": each.name,
            "arguments": _text(each.arguments),
            "status": "completed",
        }
        for place, each in enumerate(calls)
    ]


def _responses_asks(calls: Sequence[Said]) -> Object:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": _items(calls)}


def _output(item: Object) -> Reply:
    assert item["type"] == "function_call_output"
    return Reply(id=item["call_id"], failed=_failed(item["output"]), said=item["output"])


def _realtime_done(calls: Sequence[Said], status: str) -> Object:
    response = {"id": "resp_1", "object": "realtime.response", "status": status, "output": _items(calls)}
    return {"type": "response.done", "event_id": "event_1", "response": response}


def _realtime_replies(messages: Sequence[Object]) -> list[Reply]:
    *items, last = messages
    assert last == {"type": "response.create"}
    assert all(each["type"] == "conversation.item.create" for each in items)
    return [_output(each["item"]) for each in items]


# --- the others ---


def _anthropic_asks(calls: Sequence[Said]) -> Object:
    uses = [{"type": "tool_use", "id": each.id, "name": each.name, "input": each.arguments} for each in calls]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "One moment."}, *uses],
        "stop_reason": "tool_use",
    }


def _anthropic_replies(messages: Sequence[Object]) -> list[Reply]:
    (message,) = messages
    assert message["role"] == "user"
    return [
        Reply(id=each["tool_use_id"], failed=each.get("is_error", False), said=each["content"])
        for each in message["content"]
        if each["type"] == "tool_result"
    ]


def _functions(calls: Sequence[Said]) -> list[Object]:
    return [{"id": each.id, "name": each.name, "args": each.arguments} for each in calls]


def _gemini_asks(calls: Sequence[Said]) -> Object:
    parts = [{"functionCall": each} for each in _functions(calls)]
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": "One moment."}, *parts]}}]}


def _function_replies(responses: Sequence[Object]) -> Iterator[Reply]:
    for each in responses:
        said: Object = each["response"]
        held = said.get("output", said.get("error", said))
        failed = "error" in said or held["status"] == "error"
        yield Reply(id=each.get("id", ""), name=each["name"], failed=failed, said=said)


def _gemini_replies(messages: Sequence[Object]) -> list[Reply]:
    (content,) = messages
    assert content["role"] == "user"
    return list(_function_replies([each["functionResponse"] for each in content["parts"]]))


def _live_asks(calls: Sequence[Said]) -> Object:
    return {"toolCall": {"functionCalls": _functions(calls)}}


def _live_replies(messages: Sequence[Object]) -> list[Reply]:
    (message,) = messages
    return list(_function_replies(message["tool_response"]["functionResponses"]))


def _deepgram_asks(calls: Sequence[Said]) -> Object:
    functions = [
        {"id": each.id, "name": each.name, "arguments": _text(each.arguments), "client_side": True}
        for each in calls
    ]
    return {"type": "FunctionCallRequest", "functions": functions}


def _deepgram_cancels(ids: Sequence[str]) -> Object:
    return {"type": "FunctionCallCancelled", "functions": [{"id": each, "name": "any"} for each in ids]}


def _deepgram_replies(messages: Sequence[Object]) -> list[Reply]:
    assert all(each["type"] == "FunctionCallResponse" for each in messages)
    return [
        Reply(id=each["id"], name=each["name"], failed=_failed(each["content"]), said=each["content"])
        for each in messages
    ]


def _eleven_asks(calls: Sequence[Said]) -> Object:
    (call,) = calls
    made = {"tool_name": call.name, "tool_call_id": call.id, "parameters": call.arguments}
    return {"type": "client_tool_call", "client_tool_call": made}


def _eleven_replies(messages: Sequence[Object]) -> list[Reply]:
    assert all(each["type"] == "client_tool_result" for each in messages)
    return [Reply(id=each["tool_call_id"], failed=each["is_error"], said=each["result"]) for each in messages]


def _langchain_asks(calls: Sequence[Said]) -> Object:
    made = [{"type": "tool_call", "id": each.id, "name": each.name, "args": each.arguments} for each in calls]
    return {"type": "ai", "content": "", "tool_calls": made}


def _langchain_replies(messages: Sequence[Object]) -> list[Reply]:
    assert all(each["type"] == "tool" for each in messages)
    return [
        Reply(
            id=each["tool_call_id"],
            name=each["name"],
            failed=each["status"] == "error",
            said=each["content"],
        )
        for each in messages
    ]


def _mcp_asks(calls: Sequence[Said]) -> Object:
    (call,) = calls
    params = {"name": call.name, "arguments": call.arguments}
    return {"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": params}


def _mcp_cancels(ids: Sequence[str]) -> Object:
    (one,) = ids
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": one}}


def _mcp_replies(messages: Sequence[Object]) -> list[Reply]:
    return [Reply(id=each["id"], failed=each["result"]["isError"], said=each["result"]) for each in messages]


# --- declarations ---


def _flat(key: str) -> Callable[[Object], Object]:
    def apart(declared: Object) -> Object:
        return {
            "name": declared["name"],
            "description": declared.get("description"),
            "schema": declared.get(key),
        }

    return apart


def _nested(declared: Object) -> Object:
    assert declared["type"] == "function"
    return _flat("parameters")(declared["function"])


DIALOGUES: dict[str, Dialogue] = {
    "openai_chat": Dialogue(asks=_chat_asks, declared=_nested, replies=_chat_replies, spelled=True),
    "openai_responses": Dialogue(
        asks=_responses_asks,
        declared=_flat("parameters"),
        replies=lambda items: [_output(each) for each in items],
        spelled=True,
    ),
    "openai_realtime": Dialogue(
        asks=lambda calls: _realtime_done(calls, "completed"),
        declared=_flat("parameters"),
        replies=_realtime_replies,
        cancels=lambda ids: _realtime_done([Said(id=each, name="any") for each in ids], "cancelled"),
        spelled=True,
    ),
    "anthropic": Dialogue(asks=_anthropic_asks, declared=_flat("input_schema"), replies=_anthropic_replies),
    "gemini": Dialogue(asks=_gemini_asks, declared=_flat("parameters"), replies=_gemini_replies),
    "gemini_live": Dialogue(
        asks=_live_asks,
        declared=_flat("parameters"),
        replies=_live_replies,
        cancels=lambda ids: {"toolCallCancellation": {"ids": list(ids)}},
    ),
    "deepgram": Dialogue(
        asks=_deepgram_asks,
        declared=_flat("parameters"),
        replies=_deepgram_replies,
        cancels=_deepgram_cancels,
        spelled=True,
    ),
    "elevenlabs": Dialogue(
        asks=_eleven_asks, declared=_flat("parameters"), replies=_eleven_replies, parallel=False
    ),
    "langchain": Dialogue(asks=_langchain_asks, declared=_nested, replies=_langchain_replies),
    "mcp": Dialogue(
        asks=_mcp_asks,
        declared=_flat("inputSchema"),
        replies=_mcp_replies,
        cancels=_mcp_cancels,
        parallel=False,
    ),
}
"""By the name of the format."""
DIALOGUES["gemini_live_vertex"] = replace(DIALOGUES["gemini_live"], ids=False)
