"""Selects the hints that a model sees, by the setting of its context, with tools by the names it uses."""

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

import orjson

from toolcrib.errors import ADVICE, Refused
from toolcrib.formats import McpFormat
from toolcrib.gateway.declarations import Declarations
from toolcrib.gateway.gateway import Gateway
from toolcrib.hints.hint_text import NameOf, brief_text, model_json, shows_hints
from toolcrib.model import Caller, JsonObject, Result


class ResultForModel(NamedTuple):
    """A result without hints that the model's context hides, and the hints for the model."""

    result: Result
    hints: str | JsonObject = ""
    """A text, the complete hints as JSON, or an empty text."""


class ModelHints:
    """The hints that a model sees in its context; see `contexts.NAME.hints` in the config file."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._declarations = gateway, Declarations(gateway)

    def for_provider(self, result: Result, caller: Caller, format: str) -> ResultForModel:
        """Return a result with its hints for a provider format: text, or JSON if all are wanted."""
        if format == McpFormat.name:
            return ResultForModel(*self.for_mcp(result, caller))
        shown = self.without_hidden(result, caller)
        if shown.hints is None:
            return ResultForModel(shown)
        name_of = partial(self._name, caller=caller, format=format)
        if self._gateway.hint_setting(caller) == "full":
            return ResultForModel(shown, model_json(shown.hints, name_of))
        return ResultForModel(shown, _text(shown, name_of))

    def for_mcp(
        self, result: Result, caller: Caller, listed: Collection[str] | None = None
    ) -> tuple[Result, str]:
        """Return a result with the text of its hints for MCP; no text if there is nothing to act on.

        With `listed`, only these tools are suggested, by canonical names: the client has a shortened list.
        """
        shown = self.without_hidden(result, caller)
        if shown.hints is None:
            return shown, ""
        name_of = partial(self._name, caller=caller, format=McpFormat.name, listed=listed)
        text = _text(shown, name_of)
        if text and self._gateway.hint_setting(caller) == "full":
            text = orjson.dumps(model_json(shown.hints, name_of)).decode()
        return shown, text

    def without_hidden(self, result: Result, caller: Caller) -> Result:
        """Return a result without hints if the caller's context hides them."""
        if result.hints is None:
            return result
        setting = self._gateway.hint_setting(caller)
        return (
            result if shows_hints(setting, failed=result.problem is not None) else result.replace(hints=None)
        )

    def _name(
        self, name: str, caller: Caller, format: str, listed: Collection[str] | None = None
    ) -> str | None:
        """Return a tool's name in the caller's style; None for a tool that its model cannot call."""
        try:
            tool = self._gateway.tool(name, caller)
        except Refused:
            return None
        if (listed is not None and tool.name not in listed) or not self._declarations.accepts(tool, format):
            return None
        style = self._gateway.style(caller)
        # Qualified names are for REST: no provider and no MCP client accepts their colon.
        return self._declarations.name(tool, "flat" if style == "flat" else "safe", caller, format)


def _text(result: Result, name_of: NameOf) -> str:
    hints, problem = result.hints, result.problem
    if hints is None:
        return ""
    # What a tool itself says of its failure is in the result; the general advice adds nothing to it.
    general = ADVICE["TOOL_FAILED"].action
    says_it_all = problem is not None and problem.code == "TOOL_FAILED"
    advised = not says_it_all or any(each.action != general for each in hints.suggested_next_actions)
    return brief_text(hints, name_of, failed=problem is not None and advised)
