"""Judges what an answer advises: valid calls, harm, contradictions, and what it costs to tell a model."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from bench.hints.faults import Fault
from bench.hints.toolset import Request, ToolSet
from toolcrib.hints import read
from toolcrib.hints.hint_text import brief_text, estimated_tokens
from toolcrib.model import JsonObject

_RETRY = re.compile(r"(^|-)(retry|again|start-over)(-|$)")
"""Names of actions that repeat the call."""
_CHECK = re.compile(r"^check(-|$)")
"""Names of actions that look whether a call took effect."""


@dataclass(frozen=True)
class Suggestion:
    """One suggested next action."""

    action: JsonObject
    tools: ToolSet
    """What the caller sees."""

    @cached_property
    def data(self) -> Mapping[str, Any]:
        found = self.action.get("data")
        return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}

    @property
    def names_tool(self) -> bool:
        return "tool" in self.data

    @cached_property
    def call(self) -> Request | None:
        """The suggested call, with the canonical name of a visible tool; None without arguments."""
        name, arguments = self.data.get("tool"), self.data.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            return None
        found = self.tools.find(name)
        return Request(name if found is None else found.tool.name, cast("JsonObject", arguments))

    @property
    def is_valid(self) -> bool:
        """Whether it is a complete call of a visible tool, with arguments that its schema accepts."""
        found = self.tools.find(self.data.get("tool"))
        return found is not None and self.call is not None and found.accepts(self.call.arguments)

    @property
    def is_wrong(self) -> bool:
        """Whether it names a tool that the caller does not see, or arguments that its schema refuses."""
        found = self.tools.find(self.data.get("tool"))
        return found is None or (self.call is not None and not found.accepts(self.call.arguments))

    @property
    def route(self) -> tuple[str, str] | None:
        """Method and path of the suggested HTTP request, if it suggests one."""
        request = self.data.get("request")
        if not isinstance(request, Mapping):
            return None
        given = cast("Mapping[str, Any]", request)
        return str(given.get("method")), str(given.get("path"))

    @property
    def after(self) -> float | None:
        """Seconds to wait before it."""
        return self.data.get("after")


@dataclass(frozen=True)
class Advice:
    """What the answer to one call says: its data or error, and its hints."""

    asked: Request
    answer: Mapping[str, Any]
    tools: ToolSet
    """What the caller sees."""

    @property
    def error(self) -> Mapping[str, Any] | None:
        return self.answer.get("error")

    @cached_property
    def suggestions(self) -> list[Suggestion]:
        return [Suggestion(each, self.tools) for each in self.answer["agentHints"]["suggestedNextActions"]]

    @property
    def calls(self) -> list[Suggestion]:
        """Return the suggestions that name a tool."""
        return [each for each in self.suggestions if each.names_tool]

    @property
    def first(self) -> Suggestion | None:
        """The first suggestion, if it can be followed."""
        found = next(iter(self.suggestions), None)
        return found if found is not None and (found.call or found.route) else None

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens of the brief text that a model gets; 0 if there is nothing to act on."""
        hints = read(self.answer["agentHints"])
        return estimated_tokens(brief_text(hints, _local_name, failed=self.error is not None))

    def contradictions(self) -> Iterator[str]:
        """Name each suggestion that contradicts the error: its code, and what is wrong."""
        error = self.error
        if error is None:
            return
        repeats = [each for each in self.suggestions if self._repeats(each)]
        if repeats and not error["retryable"]:
            yield f"{error['code']} is not retryable, and a retry is suggested"
        if error["kind"] == "unknown" and not self._checks_first():
            yield f"{error['code']} may have taken effect, and no check is suggested first"
        wait = error.get("retryAfter")
        if wait is not None and any(each.after is not None and each.after < wait for each in repeats):
            yield f"{error['code']} asks for a longer wait than the suggestion"

    def _repeats(self, suggestion: Suggestion) -> bool:
        """Whether it is the same call again; a removed tool or a corrected argument makes another call."""
        return suggestion.call == self._canonical or bool(_RETRY.search(suggestion.action["action"]))

    @cached_property
    def _canonical(self) -> Request:
        found = self.tools.find(self.asked.tool)
        return self.asked if found is None else Request(found.tool.name, self.asked.arguments)

    def _checks_first(self) -> bool:
        first = next(iter(self.suggestions), None)
        if first is None:
            return False
        found = None if first.call is None else self.tools.find(first.call.tool)
        reads = found is not None and not found.is_mutation
        return reads or bool(_CHECK.match(first.action["action"]))


def is_harmful(fault: Fault, followed: Request, tools: ToolSet) -> bool:
    """Whether following changes something that nobody asked for.

    A mutation is asked for if it is the expected repair. Where no repair is determined, it is still the same
    mutation as long as every argument has a value that was meant; where the faulty call was carried out all
    the same, repeating it in any form is not asked for.
    """
    found = tools.find(followed.tool)
    if found is None or not found.is_mutation or followed == fault.expected:
        return False
    meant = fault.valid.request
    same_tool = found.tool.name == meant.tool and fault.expected is None and not fault.carried_out
    return not (
        same_tool and all(meant.arguments.get(key) == value for key, value in followed.arguments.items())
    )


def _local_name(name: str) -> str:
    """Return the name by which a model calls a tool."""
    return name.rpartition(":")[2]
