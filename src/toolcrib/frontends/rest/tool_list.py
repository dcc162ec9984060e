"""Lists the tools a caller may use, from JSON cached per catalog version and audience."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import orjson

from toolcrib.apps.phrases import phrases
from toolcrib.formats import FORMATS
from toolcrib.frontends.rest.fields import choice, count, text
from toolcrib.gateway import Declarations, Gateway, map_cooperatively
from toolcrib.http import HttpResponse, Request
from toolcrib.model import Caller, JsonObject, Tool

STYLES = ("qualified", "safe", "flat")
MOST = 10_000
UNVERIFIED = "no device is connected, so nobody knows whether it has what some of these apps need"
_MIN_LINES, _LINES_PER_TOOL = 256, 4
"""Capacity of the cache of serialized tools, per format: a minimum, and entries per listed tool."""
"""Several per tool, because old definitions and those of removed servers stay until the cache is cleared."""


class _Wanted(NamedTuple):
    """The format, naming style and caller of a list."""

    caller: Caller
    spelling: str
    style: str

    @property
    def kept(self) -> str:
        """The cache key of a list in this format."""
        return f"rest-{self.spelling}-{self.style}-{self.caller.language if self.spelling == 'rest' else ''}"


class RestToolList:
    """Handler of `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._declaring = gateway, Declarations(gateway)
        self._lines: dict[str, dict[tuple[str, bool, str, str], bytes]] = {each: {} for each in FORMATS}
        self._max_lines = _MIN_LINES

    async def tools(self, request: Request) -> HttpResponse:
        """List the tools, optionally searched, limited and reduced to the provider's limit."""
        query = request.query("context", "format", "style", "q", "limit", "text")
        caller = self._gateway.enter(request.caller, text(query, "context"))
        spelling = choice(query, "format", tuple(FORMATS), "rest")
        style = choice(query, "style", STYLES, "") if "style" in query else None
        wanted = _Wanted(caller, spelling, self._declaring.style(caller, spelling, style))
        limit = count(query, "limit", default=MOST, most=MOST)
        if "q" in query or limit != MOST:
            return HttpResponse(200, await self._chosen(wanted, query, limit))
        kept: bytes | None = self._gateway.kept(caller, wanted.kept)
        return HttpResponse(200, kept or await self._whole(wanted, query))

    async def _whole(self, wanted: _Wanted, query: Mapping[str, str]) -> bytes:
        """Return the complete list, cached unless it must be cut to the provider's limit."""
        caller, spelling = wanted.caller, wanted.spelling
        await self._declaring.ready(caller, spelling)
        most = self._declaring.cutting.most(caller, spelling)
        if most is not None and len(self._gateway.tools(caller)) > most:
            return await self._chosen(wanted, query, MOST)
        return await self._gateway.preparing(caller, wanted.kept, partial(self._spelled, wanted))

    async def _chosen(self, wanted: _Wanted, query: Mapping[str, str], limit: int) -> bytes:
        """Return a part of the list. Not cached: the ranking by usage changes all the time."""
        await self._declaring.ready(wanted.caller, wanted.spelling)
        if "q" in query or "text" in query:
            await self._gateway.read()
        asked = query.get("q", "")
        found = self._gateway.search(wanted.caller, asked)
        return await self._spelled(wanted, found, said=query.get("text", ""), ranked=bool(asked), limit=limit)

    async def _spelled(
        self,
        wanted: _Wanted,
        tools: Sequence[Tool],
        *,
        said: str = "",
        ranked: bool = False,
        limit: int = MOST,
    ) -> bytes:
        caller, spelling = wanted.caller, wanted.spelling
        chosen = self._declaring.choose(tools, caller, spelling, text=said, ranked=ranked)
        self._max_lines = max(self._max_lines, _MIN_LINES + _LINES_PER_TOOL * len(tools))
        lines = await map_cooperatively(chosen.tools[:limit], partial(self._line, wanted))
        if spelling != "rest":
            # Already serialized: the envelope embeds it as it is.
            declared = cast("list[JsonObject]", [orjson.Fragment(line) for line in lines])
            return orjson.dumps(chosen.declared(declared, spelling).as_json())
        cut = b',"cut":%d' % chosen.cut if chosen.cut else b""
        warnings = _warnings(caller, chosen.tools)
        return b'{"tools":[%s],"total":%d%s%s}' % (b",".join(lines), chosen.total, cut, warnings)

    def _line(self, wanted: _Wanted, tool: Tool) -> bytes:
        """Serialize a tool, cached for all callers that see the same; every list is joined from these."""
        name = self._declaring.name(tool, wanted.style, wanted.caller, wanted.spelling)
        lines = self._lines[wanted.spelling]
        key = (tool.fingerprint, tool.degraded, name, wanted.caller.language if tool.extensions else "")
        found = lines.get(key)
        if found is None:
            if len(lines) >= self._max_lines:
                lines.clear()
            found = lines[key] = orjson.dumps(_spelled(wanted, tool, name))
        return found


def _spelled(wanted: _Wanted, tool: Tool, name: str) -> JsonObject:
    spelled = FORMATS[wanted.spelling].tool(tool, name)
    if wanted.spelling != "rest" or not tool.extensions:
        return spelled
    return {**spelled, "activationPhrases": phrases(tool.extensions, wanted.caller.language)}


def _warnings(caller: Caller, tools: Sequence[Tool]) -> bytes:
    """Return a warning if apps need hardware and no device is connected to check it."""
    if not caller.session or caller.device is not None or not any(tool.hardware for tool in tools):
        return b""
    return b',"warnings":%s' % orjson.dumps([UNVERIFIED])
