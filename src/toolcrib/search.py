"""Finding a tool by what it does: by the words of its name, description, category and tags."""

from collections.abc import Iterable

from toolcrib.apps.phrases import every_phrase
from toolcrib.model import Tool


class Index:
    """The text of some tools, made once; asked often."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._lines = [(_names(tool), _text(tool), tool) for tool in tools]

    def find(self, query: str) -> tuple[Tool, ...]:
        """Return the tools whose text holds every word of the query, those with them in their names first."""
        words = query.casefold().split()
        found = [line for line in self._lines if all(word in line[1] for word in words)]
        found.sort(key=lambda line: not all(word in line[0] for word in words))
        return tuple(tool for _, _, tool in found)


def _names(tool: Tool) -> str:
    return " ".join((tool.name, tool.exposed, tool.title or "")).casefold()


def _text(tool: Tool) -> str:
    said = (_names(tool), tool.description, tool.category, *tool.tags, *every_phrase(tool.extensions))
    return " ".join(said).casefold()
