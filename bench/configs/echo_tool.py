"""Tools under test: they return their text, so that the gateway's overhead is measured."""

from toolcrib import ToolResult, create_tool, hints


@create_tool(
    category="query",
    response_time="fast",
    idempotent=True,
    tags=["half"],
    examples=[{"description": "One word", "params": {"text": "hello"}, "expectedResult": "hello"}],
)
async def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


@create_tool(category="query", response_time="fast", idempotent=True, tags=["half"])
async def hinted_echo(text: str) -> ToolResult[str]:
    """Return the text unchanged, with its own hints."""
    again = hints.action("echo", "low", description="Return the text again.", category="exploration")
    own = hints.found(text, next=again, related=hints.resource("text", "text_1", "The text"))
    return ToolResult(data=text, hints=own)
