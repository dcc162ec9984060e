"""The shapes that LangChain's tools have, without LangChain: its own are met in tests/sources."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class ToolException(Exception):
    """What LangChain tools raise to report a failure."""


@dataclass
class ToolMessage:
    """What a call made as a whole `ToolCall` gives."""

    content: Any
    artifact: Any = None
    status: str = "success"
    tool_call_id: str = "1"


class InjectedToolCallId:
    """Marks the argument that takes the id of the call."""


@dataclass
class Chain:
    """A LangChain tool. `asked` is its input, `give` computes its answer."""

    name: str = "look_up"
    description: str = "Look something up."
    give: Callable[[Any], Any] = lambda asked: asked
    args_schema: Any = None
    tool_call_schema: Any = None
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lc_name: Any = None
    tags: list[str] | None = None
    metadata: Any = None
    coroutine: Any = None
    response_format: str = "content"
    handle_tool_error: Any = False
    handle_validation_error: Any = False
    asked: list[Any] = field(default_factory=list[Any])
    config: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        if self.tool_call_schema is None:
            self.tool_call_schema = self.args_schema

    def invoke(self, input: Any, config: Any = None) -> Any:
        self.asked.append(input)
        self.config.append(config)
        return self.give(input)

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        return self.invoke(input, config)


class Blocking(Chain):
    """One that has only a plain function, which LangChain's own ways would run in a thread of the loop's."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        raise AssertionError

    async def _arun(self) -> None: ...


for _way in ("ainvoke", "_arun"):
    getattr(Blocking, _way).__module__ = "langchain_core.tools.base"


class OldField:
    """A field of a model in the older age of pydantic."""

    def __init__(self, required: bool) -> None:
        self.required = required


class OldModel:
    """A model of that age: `count` is even."""

    __fields__ = {"count": OldField(required=True)}  # noqa: RUF012 - that is its shape

    @staticmethod
    def schema() -> dict[str, Any]:
        properties = {"count": {"type": "integer"}}
        return {"title": "Old", "type": "object", "properties": properties, "required": ["count"]}

    @staticmethod
    def parse_obj(value: dict[str, Any]) -> None:
        if value["count"] % 2:
            raise OldFault
        if value["count"] > 9:
            message = "no fault of the arguments'"
            raise ValueError(message)


class OldFault(ValueError):
    """What such a model raises."""

    def errors(self) -> list[dict[str, Any]]:
        return [{"loc": ("count",), "msg": "odd"}]
