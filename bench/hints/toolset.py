"""The tools of a gateway as the robot looks at them: found by any name, with their schemas compiled once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from toolcrib.model import JsonObject, Tool
from toolcrib.schemas import Validator, compile_schema

HINTED_READ_ONLY = "readOnlyHint"


@dataclass(frozen=True)
class Signature:
    """One tool and the compiled schema of its arguments."""

    tool: Tool

    @cached_property
    def _validator(self) -> Validator:
        return compile_schema(dict(self.tool.input_schema))

    def accepts(self, arguments: object) -> bool:
        """Whether the arguments are an object that is valid against the schema."""
        if not isinstance(arguments, Mapping):
            return False
        return self._validator.ok({**cast("JsonObject", arguments)})

    @property
    def is_mutation(self) -> bool:
        """Whether a call may change something; a server's own word that it does not is believed here."""
        return self.tool.category == "mutation" and self.tool.annotations.get(HINTED_READ_ONLY) is not True


class ToolSet:
    """Some tools; a suggestion may name one by its canonical name, its exposed one or an alias."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.signatures = {tool.name: Signature(tool) for tool in tools}
        self._names: dict[str, Signature] = {}
        for each in self.signatures.values():
            for name in (each.tool.name, each.tool.exposed, each.tool.local, *each.tool.aliases):
                self._names.setdefault(name, each)

    def find(self, name: object) -> Signature | None:
        """Return the tool of this name; a canonical name comes before any other."""
        if not isinstance(name, str):
            return None
        return self.signatures.get(name) or self._names.get(name)

    def only(self, names: Iterable[str]) -> "ToolSet":
        """Return the set of those tools that a list names."""
        wanted = {*names}
        return ToolSet(each.tool for name, each in self.signatures.items() if name in wanted)


@dataclass(frozen=True)
class Request:
    """A call as it is sent: the name of a tool, and arguments."""

    tool: str
    arguments: JsonObject
