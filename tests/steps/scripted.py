"""A handler that raises the given errors, then answers."""

from toolcrib.errors import ToolcribError
from toolcrib.model import Call, Result
from toolcrib.testing import echo


class Script:
    """Raises the listed errors, then answers."""

    def __init__(self, *errors: ToolcribError) -> None:
        self.errors, self.tries = list(errors), 0

    async def __call__(self, call: Call) -> Result:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return await echo(call)
