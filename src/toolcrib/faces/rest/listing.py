"""The tools a caller may use, from bytes prepared once per catalog version and audience."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import orjson

from toolcrib.apps.phrases import phrases
from toolcrib.asgi import Answer, Request
from toolcrib.faces.rest.fields import choice, count, text
from toolcrib.formats import FORMATS, Rest
from toolcrib.gateway import Declaring, Gateway
from toolcrib.model import Caller, Tool

STYLES = ("qualified", "safe", "flat")
MOST = 10_000
UNVERIFIED = "no device is connected, so nobody knows whether it has what some of these apps need"
_MOST_LINES = 50_000
_REST = Rest()


class _Wanted(NamedTuple):
    """How a list is to be spelled, for whom."""

    caller: Caller
    spelling: str
    style: str

    @property
    def kept(self) -> str:
        """What a list spelled so is kept under."""
        return f"rest-{self.spelling}-{self.style}-{self.caller.language}"


class Listing:
    """Answers `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._declaring = gateway, Declaring(gateway)
        self._lines: dict[tuple[str, bool, str, str], bytes] = {}

    async def tools(self, request: Request) -> Answer:
        """List, filter and cut."""
        query = request.query("context", "format", "style", "q", "limit", "text")
        caller = self._gateway.enter(request.caller, text(query, "context"))
        spelling = choice(query, "format", tuple(FORMATS), "rest")
        style = choice(query, "style", STYLES, "") if "style" in query else None
        wanted = _Wanted(caller, spelling, self._declaring.style(caller, spelling, style))
        limit = count(query, "limit", default=MOST, most=MOST)
        most = self._declaring.cutting.most(caller, spelling)
        if "q" not in query and limit == MOST and (most is None or len(self._gateway.tools(caller)) <= most):
            return Answer(200, self._gateway.prepared(caller, wanted.kept, partial(self._spelled, wanted)))
        if "q" in query or "text" in query:
            await self._gateway.read()
        return Answer(200, self._chosen(wanted, query, limit))

    def _chosen(self, wanted: _Wanted, query: Mapping[str, str], limit: int) -> bytes:
        """Spell a part of the list. Which tools are used most changes all the time, so it is not kept."""
        caller, asked = wanted.caller, query.get("q", "")
        found = self._gateway.search(caller, asked)
        return self._spelled(wanted, found, said=query.get("text", ""), ranked=bool(asked), limit=limit)

    def _spelled(
        self,
        wanted: _Wanted,
        tools: Sequence[Tool],
        *,
        said: str = "",
        ranked: bool = False,
        limit: int = MOST,
    ) -> bytes:
        caller, spelling, style = wanted
        if spelling != "rest":
            declared = self._declaring.declare(
                tools, caller, spelling, style, text=said, ranked=ranked, limit=limit
            )
            return orjson.dumps(declared.as_json())
        kept = self._declaring.cutting.cut(tools, caller, spelling, text=said, ranked=ranked)
        lines = b",".join([self._line(wanted, tool) for tool in kept[:limit]])
        cut = b',"cut":%d' % (len(tools) - len(kept)) if len(kept) < len(tools) else b""
        return b'{"tools":[%s],"total":%d%s%s}' % (lines, len(tools), cut, _warnings(caller, kept))

    def _line(self, wanted: _Wanted, tool: Tool) -> bytes:
        """Spell a tool once for all who see it so; lists of any cut are put together from these."""
        name = self._gateway.named(tool, wanted.style, wanted.caller)
        key = (tool.fingerprint, tool.degraded, name, wanted.kept)
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= _MOST_LINES:
                self._lines.clear()
            spelled = _REST.tool(tool, name)
            if tool.extensions:
                spoken = phrases(tool.extensions, wanted.caller.language)
                spelled = {**spelled, "activationPhrases": spoken}
            found = self._lines[key] = orjson.dumps(spelled)
        return found


def _warnings(caller: Caller, tools: Sequence[Tool]) -> bytes:
    """Say where nobody could look whether a device has what apps need."""
    if not caller.session or caller.device is not None or not any(tool.hardware for tool in tools):
        return b""
    return b',"warnings":%s' % orjson.dumps([UNVERIFIED])
