"""One function, called through its source."""

from typing import Any

from toolcrib.model import Call, Result
from toolcrib.sdk import AnyTool
from toolcrib.sources.functions import Functions
from toolcrib.testing import a_call


async def run(made: AnyTool, arguments: dict[str, Any] | None = None, **fields: Any) -> Result:
    return await Functions("test", [made]).call(call_of(made, arguments, **fields))


def call_of(made: AnyTool, arguments: dict[str, Any] | None = None, **fields: Any) -> Call:
    return a_call(made.bind("test"), arguments=arguments or {}, **fields)
