"""A minimal tool.

To serve it, set `functions: ["hello_tool"]` in a toolcrib.yaml in this folder: its name is then
`hello_tool:say-hello`. A tool is still a function: run this file to call it without a gateway.
"""

from typing import Annotated

import anyio
from pydantic import Field

from toolcrib import ToolContext, tool


@tool(
    category="query",
    response_time="fast",
    permissions=[],
    tags=["greeting"],
    examples=[
        {
            "description": "Greet Ada",
            "params": {"name": "Ada"},
            "expectedResult": {"greeting": "Hello, Ada!"},
        }
    ],
)
async def say_hello(
    name: Annotated[str, Field(description="Whom to greet.", min_length=1, max_length=80)],
    ctx: ToolContext,
) -> dict[str, str]:
    """Greet someone by name and return the greeting. Use it to see that everything works."""
    who = f", says {ctx.agent_id}" if ctx.agent_id != "unknown" else ""
    return {"greeting": f"Hello, {name}!{who}"}


if __name__ == "__main__":
    print(anyio.run(say_hello, "Ada", ToolContext()))
