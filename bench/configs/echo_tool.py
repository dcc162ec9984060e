"""The tools under load: they say their text again, so that what is measured is the way to them."""

from toolcrib import ToolResult, create_tool, hints


@create_tool(
    category="query",
    response_time="fast",
    idempotent=True,
    tags=["half"],
    examples=[{"description": "One word", "params": {"text": "hello"}, "expectedResult": "hello"}],
)
async def echo(text: str) -> str:
    """Say the text again."""
    return text


@create_tool(category="query", response_time="fast", idempotent=True, tags=["half"])
async def hinted_echo(text: str) -> ToolResult[str]:
    """Say the text again, with hints of its own."""
    after = hints.action("echo", "low", description="Hear it once more.", category="exploration")
    said = hints.found(text, next=after, related=hints.resource("text", "text_1", "What was said"))
    return ToolResult(data=text, hints=said)
