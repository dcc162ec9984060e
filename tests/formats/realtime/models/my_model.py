"""A fake LangChain chat model: it makes two parallel calls, then ends."""
# pyright: basic, reportMissingImports=false, reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool


class Stand(BaseChatModel):
    """Checks its tools and the results of its calls."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[dict[str, Any]], **_: Any) -> Runnable[Any, Any]:
        assert [convert_to_openai_tool(each) for each in tools] == list(tools)
        return self.bind(tools=tools)

    def _generate(self, messages: list[BaseMessage], *_: Any, tools: Any = (), **__: Any) -> ChatResult:
        answers = [each for each in messages if isinstance(each, ToolMessage)]
        message = self._content(answers) if answers else self._calls(tools)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _calls(self, tools: Sequence[dict[str, Any]]) -> AIMessage:
        assert "get_weather" in {each["function"]["name"] for each in tools}
        calls = [
            {"type": "tool_call", "id": f"c-{city}", "name": "get_weather", "args": {"city": city}}
            for city in ("Oslo", "Bergen")
        ]
        broken = {"type": "invalid_tool_call", "id": "c-x", "name": "get_weather", "args": "{", "error": None}
        return AIMessage(content="", tool_calls=calls, invalid_tool_calls=[broken])

    def _content(self, answers: list[ToolMessage]) -> AIMessage:
        assert [each.tool_call_id for each in answers] == ["c-Oslo", "c-Bergen", "c-x"]
        assert [each.status for each in answers] == ["success", "success", "error"]
        assert answers[1].artifact == {"city": "Bergen", "sky": "clear", "degrees": 21}
        assert '"degrees":21' in answers[0].content
        return AIMessage(content="Both are sunny.")


model = Stand()
