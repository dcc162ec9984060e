"""The tool under load: it says its text again and no more, so that what is measured is the way to it."""

from toolcrib import tool


@tool(category="query", response_time="fast", idempotent=True, tags=["half"])
async def echo(text: str) -> str:
    """Say the text again."""
    return text
