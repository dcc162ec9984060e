"""Tools written for LangChain, served by the gateway.

Requires LangChain's core: pip install "toolcrib[langchain]". Run this file, or serve its tools with
`functions: ["langchain_tools"]` in a toolcrib.yaml in this folder.
"""
# pyright: basic, reportMissingImports=false, reportArgumentType=false

from typing import ClassVar

import anyio
from langchain_core.tools import BaseTool, ToolException, tool

from toolcrib import Crib, Registry


@tool(parse_docstring=True)
def count_letter(text: str, letter: str) -> int:
    """Count how often a letter is in a text. Use it where guessing would be wrong; returns the number.

    Args:
        text: The text to look through.
        letter: The letter to look for.
    """
    return text.lower().count(letter.lower())


class FindBook(BaseTool):
    """A tool with a separate name for Toolcrib (`lc_name`), which raises an error if it finds no book."""

    name: str = "FindBook"
    lc_name: str = "find-book"
    description: str = "Find a book by its title and return where it stands. Use it before lending one out."
    shelves: ClassVar[dict[str, str]] = {"Moby-Dick": "A3", "Middlemarch": "B1"}

    def _run(self, title: str) -> dict[str, str]:
        if title not in self.shelves:
            message = f"There is no book called {title}."
            raise ToolException(message)
        return {"title": title, "shelf": self.shelves[title]}


registry = Registry()
registry.register_langchain_tool(count_letter, category="query", response_time="fast", tags=["text"])
registry.register_langchain_tool(FindBook(), category="query", permissions=["books:read"], tags=["books"])


async def main() -> None:
    """Call the tools as an agent does."""
    async with Crib(tools=registry.get_all()) as crib:
        counted = await crib.call("count_letter", {"text": "Strawberry", "letter": "r"})
        print("Counted:", counted.data)

        found = await crib.call("find-book", {"title": "Middlemarch"})
        print("Found:", found.data)

        missing = await crib.call("find-book", {"title": "Emma"})
        if missing.problem is not None:
            print(f"Missing: {missing.problem.code}, {missing.problem.message}")

        wrong = await crib.call("find-book", {"title": 7})
        if wrong.problem is not None:
            print(f"Wrong: {wrong.problem.code} at {wrong.problem.path}")


if __name__ == "__main__":
    anyio.run(main)
