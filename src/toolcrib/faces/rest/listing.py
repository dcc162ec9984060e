"""The tools a caller may use, from bytes prepared once per catalog version and audience."""

from collections.abc import Sequence
from functools import partial

import orjson

from toolcrib.apps.phrases import phrases
from toolcrib.asgi import Answer, Request
from toolcrib.errors import Refused
from toolcrib.faces.rest.fields import choice, count, text
from toolcrib.formats import FORMATS
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, Tool

STYLES = ("qualified", "safe", "flat")
MOST = 10_000
UNVERIFIED = "no device is connected, so nobody knows whether it has what some of these apps need"
_MOST_LINES = 50_000


class Listing:
    """Answers `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lines: dict[tuple[str, bool, str, str], bytes] = {}

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
        kept = f"rest-{spelling}-{style}-{caller.language}"
        if "q" not in query and limit == MOST:
            return Answer(200, self._gateway.prepared(caller, kept, partial(self._whole, kept, caller)))
        found = self._gateway.search(caller, query.get("q", ""))
        return Answer(200, self._joined(kept, caller, found[:limit], len(found)))

    def _whole(self, kept: str, caller: Caller, tools: Sequence[Tool]) -> bytes:
        return self._joined(kept, caller, tools, len(tools))

    def _joined(self, kept: str, caller: Caller, tools: Sequence[Tool], total: int) -> bytes:
        lines = b",".join([self._line(kept, caller, tool) for tool in tools])
        return b'{"tools":[%s],"total":%d%s}' % (lines, total, _warnings(caller, tools))

    def _line(self, kept: str, caller: Caller, tool: Tool) -> bytes:
        """Spell a tool once for all who see it so; lists of any cut are put together from these."""
        _, spelling, style, language = kept.split("-", 3)
        name = self._gateway.named(tool, style, caller)
        key = (tool.fingerprint, tool.degraded, name, kept)
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= _MOST_LINES:
                self._lines.clear()
            spelled = FORMATS[spelling].tool(tool, name)
            if spelling == "rest" and tool.extensions:
                spelled = {**spelled, "activationPhrases": phrases(tool.extensions, language)}
            found = self._lines[key] = orjson.dumps(spelled)
        return found


def _warnings(caller: Caller, tools: Sequence[Tool]) -> bytes:
    """Say where nobody could look whether a device has what apps need."""
    if not caller.session or caller.device is not None or not any(tool.hardware for tool in tools):
        return b""
    return b',"warnings":%s' % orjson.dumps([UNVERIFIED])
