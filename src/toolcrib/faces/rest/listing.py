"""The tools a caller may use, from bytes prepared once per catalog version and audience."""

from collections.abc import Sequence
from functools import partial

import orjson

from toolcrib.asgi import Answer, Request
from toolcrib.errors import Refused
from toolcrib.faces.rest.fields import choice, count, text
from toolcrib.formats import FORMATS
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, Tool

STYLES = ("qualified", "safe", "flat")
MOST = 10_000


class Listing:
    """Answers `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def tools(self, request: Request) -> Answer:
        """List, filter and cut."""
        query = request.query("context", "format", "style", "q", "limit")
        caller = self._gateway.enter(request.caller, text(query, "context"))
        spelling = choice(query, "format", tuple(FORMATS), "rest")
        usual = self._gateway.style(caller) or ("qualified" if spelling == "rest" else "safe")
        style = choice(query, "style", STYLES, usual)
        if style == "qualified" and spelling != "rest":
            message = f"qualified names hold a colon, which {spelling} does not allow; use safe or flat"
            raise Refused("INVALID_REQUEST", message, path="style")
        limit = count(query, "limit", default=MOST, most=MOST)
        kept = f"rest-{spelling}-{style}"
        if "q" not in query and limit == MOST:
            return Answer(
                200, self._gateway.prepared(caller, f"{kept}-whole", partial(self._whole, kept, caller))
            )
        found = self._gateway.search(caller, query.get("q", ""))
        return Answer(200, self._joined(kept, caller, found[:limit], len(found)))

    def _whole(self, kept: str, caller: Caller, tools: Sequence[Tool]) -> bytes:
        return self._joined(kept, caller, tools, len(tools))

    def _joined(self, kept: str, caller: Caller, tools: Sequence[Tool], total: int) -> bytes:
        lines = self._gateway.prepared(caller, kept, partial(self._lines, kept, caller))
        return b'{"tools":[%s],"total":%d}' % (b",".join(lines[tool.name] for tool in tools), total)

    def _lines(self, kept: str, caller: Caller, tools: Sequence[Tool]) -> dict[str, bytes]:
        """Spell every tool once; lists of any cut are put together from these."""
        _, spelling, style = kept.split("-")
        form, name = FORMATS[spelling], self._gateway.named
        return {tool.name: orjson.dumps(form.tool(tool, name(tool, style, caller))) for tool in tools}
