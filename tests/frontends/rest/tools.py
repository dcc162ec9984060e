"""Tools that end in every way a tool can, and the config they are served with."""

from typing import Annotated, Any

import anyio
from pydantic import BaseModel, Field

from toolcrib import BusinessRuleError, ToolContext, create_tool

CONFIG = """
contexts:
  few: {tools: ["tools:add"]}
  none: {tools: []}
  flat: {style: flat}
overrides:
  "tools:old": {deprecated: {since: "1.0.0", replacement: "tools:add", removal_date: "2020-01-01"}}
  "tools:hidden": {hidden: true}
limits: {result_bytes: 20000}
"""


class Sum(BaseModel):
    """What adding gives."""

    total: int


@create_tool(category="query", response_time="fast", tags=["maths"], speech_template="That makes {total}.")
async def add(
    a: Annotated[int, Field(description="The first.")],
    b: Annotated[int, Field(description="The second.")] = 1,
) -> Sum:
    """Add two whole numbers."""
    return Sum(total=a + b)


@create_tool(category="query", permissions=["secrets:read"])
async def secret() -> str:
    """Return what needs a permission."""
    return "psst"


@create_tool(category="query", rate_limit={"maxCalls": 1, "windowMs": 3_600_000})
async def once() -> str:
    """Work once an hour."""
    return "done"


@create_tool(category="mutation")
async def fail() -> str:
    """Break a rule of its own."""
    raise BusinessRuleError("NOT_TODAY", "Not on a Sunday.")


@create_tool(category="mutation")
async def crash() -> str:
    """Raise an unexpected error."""
    message = "password=hunter2 at /etc/shadow"
    raise RuntimeError(message)


@create_tool(category="query", timeout=0.01)
async def ask_slowly() -> str:
    """Time out in a query."""
    await anyio.sleep_forever()
    return ""


@create_tool(category="mutation", timeout=0.01)
async def change_slowly() -> str:
    """Take too long to change something."""
    await anyio.sleep_forever()
    return ""


@create_tool(category="query")
async def flood() -> str:
    """Answer with more than anyone wants."""
    return "x" * 30_000


@create_tool(category="query")
async def nothing() -> None:
    """Answer nothing, which is no answer."""


@create_tool(category="query")
async def old() -> str:
    """Have been useful once."""
    return "old"


@create_tool(category="query")
async def hidden() -> str:
    """Be out of sight."""
    return "hidden"


@create_tool(category="query", response_time="slow")
async def count(ctx: ToolContext, to: int) -> int:
    """Count and report progress."""
    for number in range(to):
        await ctx.report(number, to, f"at {number}")
    return to


@create_tool(category="query")
async def echo(value: dict[str, Any]) -> dict[str, Any]:
    """Give back what it is given."""
    return value


@create_tool(category="query")
async def who(ctx: ToolContext) -> dict[str, Any]:
    """Return the caller."""
    return {
        "user": ctx.user_id,
        "agent": ctx.agent_id,
        "version": ctx.agent_version,
        "session": ctx.session_id,
        "trace": ctx.trace_id,
        "correlation": ctx.correlation_id,
    }


class WaitingTool:
    """The state of a call that waits forever."""

    def __init__(self) -> None:
        self.started, self.cancelled = anyio.Event(), anyio.Event()

    def tool(self) -> Any:
        @create_tool(category="query", response_time="slow", timeout=60)
        async def wait() -> str:
            """Wait until cancelled."""
            self.started.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
            return ""

        return wait


TOOLS = (
    add,
    secret,
    once,
    fail,
    crash,
    ask_slowly,
    change_slowly,
    flood,
    nothing,
    old,
    hidden,
    count,
    echo,
    who,
)
