"""One `tools/call`: into the gateway, and its result back as the protocol spells it."""

from collections.abc import Mapping
from typing import Any

import orjson
from mcp import MCPError
from mcp.server.session import ServerSession
from mcp.shared.inbound import X_MCP_HEADER_KEY, validate_mcp_param_headers
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result
from pydantic import ValidationError

from toolcrib.errors import CODES, Refused, problem
from toolcrib.faces.mcp.era import LEGACY, MODERN, Request, is_modern
from toolcrib.faces.mcp.origin import meta_of, origin_of
from toolcrib.formats.mcp import meta, result
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, JsonObject, Origin, Problem, Progress, Report, Result, Tool

_STEP = 0.001
_MOST_PLAIN = 10_000
_QUICK = frozenset({"function", "core"})
_LONG = 15.0
"""Seconds after which the SDK begins to send signs of life."""
_MARK = f'"{X_MCP_HEADER_KEY}"'.encode()
_PROTOCOL_CODES = {"INVALID_REQUEST": INVALID_REQUEST}


class Calling:
    """Answers `tools/call` from the raw parameters: models of them would be built only to be taken apart."""

    def __init__(self, gateway: Gateway, stamp: JsonObject) -> None:
        self._gateway, self._stamp = gateway, stamp
        self._version = 0
        self._plain: set[tuple[str, str, str]] = set()

    async def answer(self, request: Request, params: JsonObject, caller: Caller) -> dict[str, Any]:
        """Carry out the call; what is wrong with the request itself becomes a protocol error."""
        modern, http = is_modern(request), request.request
        if modern and http is not None and not self.is_plain(params["name"], caller):
            self._check_headers(http.headers, params, caller)
        origin, report = origin_of(request), _report(request)
        return await self.carry_out(params, caller, origin, report, modern=modern)

    async def carry_out(
        self, params: JsonObject, caller: Caller, origin: Origin, report: Report | None, *, modern: bool
    ) -> dict[str, Any]:
        """Make the call and spell its result."""
        outcome = await self._gateway.call(
            params["name"], params.get("arguments"), caller, origin=origin, report=report
        )
        if outcome.problem is not None and CODES[outcome.problem.code].mcp == "error":
            raise protocol_error(outcome.problem, outcome)
        return self._spelled(outcome, origin, modern=modern)

    def refuse(self, problem: Problem, origin: Origin) -> MCPError:
        """Return the error for a request that never became a call."""
        return protocol_error(problem, self._gateway.refusal(problem, origin))

    def is_plain(self, name: str, caller: Caller) -> bool:
        """Whether a call needs nothing but an answer, soon: found out once per catalog, name and caller."""
        asked = (name, caller.id, caller.context)
        if self._version != self._gateway.version or len(self._plain) >= _MOST_PLAIN:
            self._version, self._plain = self._gateway.version, set()
        if asked in self._plain:
            return True
        try:
            plain = _is_plain(self._gateway.tool(name, caller))
        except Refused:
            return False
        if plain:
            self._plain.add(asked)
        return plain

    def _spelled(self, outcome: Result, origin: Origin, *, modern: bool) -> dict[str, Any]:
        spelled = result(outcome)
        if modern:
            spelled["resultType"] = "complete"
            spelled["_meta"][SERVER_INFO_META_KEY] = self._stamp
        if not outcome.content:
            return spelled
        checked = _checked(spelled, MODERN if modern else LEGACY)
        if checked is not None:
            return checked
        broken = problem("CONTRACT_VIOLATION", "the tool's answer holds content that MCP does not know")
        return self._spelled(self._gateway.refusal(broken, origin), origin, modern=modern)

    def _check_headers(self, headers: Mapping[str, str], params: JsonObject, caller: Caller) -> None:
        """Compare arguments that travel in headers too. The SDK's own check does not know the caller."""
        try:
            tool = self._gateway.tool(params["name"], caller)
        except Refused:
            return
        arguments: JsonObject = params.get("arguments") or {}
        wrong = validate_mcp_param_headers(tool.input_schema, arguments, headers)
        if wrong is not None:
            raise MCPError(wrong.code, wrong.message, wrong.data)


def protocol_error(problem: Problem, outcome: Result) -> MCPError:
    """Spell a refusal as a protocol error; its data says what `_meta` says of a result."""
    return MCPError(_PROTOCOL_CODES.get(problem.code, INVALID_PARAMS), problem.message, meta(outcome))


def _checked(spelled: dict[str, Any], version: str) -> dict[str, Any] | None:
    """Return a result whose blocks the protocol knows; they come from sources, and others break clients."""
    try:
        checked = serialize_server_result("tools/call", version, spelled)
    except ValidationError:
        return None
    # The modern schema takes a result that fits nowhere for a question, and drops what it says.
    return checked if "content" in checked else None


def _is_plain(tool: Tool) -> bool:
    """Whether no argument of this tool travels in a header, and no proxy will lose patience with it."""
    quick = tool.family in _QUICK and tool.response_time != "slow" and (tool.timeout or 0) < _LONG
    return quick and _MARK not in orjson.dumps(tool.input_schema)


def _report(request: Request) -> Report | None:
    return _Reporter(request.session) if "progressToken" in meta_of(request) else None


class _Reporter:
    """Sends progress to a client that asked for it. The protocol wants every number above the last."""

    def __init__(self, session: ServerSession) -> None:
        self._session, self._last = session, 0.0

    async def __call__(self, progress: Progress) -> None:
        done = progress.done
        self._last = done if done is not None and done > self._last else self._last + _STEP
        await self._session.report_progress(self._last, progress.total, progress.message)
