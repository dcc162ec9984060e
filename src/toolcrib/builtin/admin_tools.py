"""Audits refused calls of the core tools that administer the gateway; the console records the others."""

from collections.abc import Mapping
from functools import partial

from toolcrib.interfaces import Handler
from toolcrib.model import Actor, Call, Problem, Result, Tool
from toolcrib.observe import Audit

ACTIONS: Mapping[str, str] = {"crib:mcp_add_server": "servers.add"}
"""The action each of these tools stands for."""


class AdminTools:
    """Records an attempt that ended before the console was asked: denied, invalid, limited, timed out."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._at_console: set[str] = set()

    def audited(self, tool: Tool, handler: Handler) -> Handler:
        """Return the handler of a tool, audited where the tool is one of these."""
        return partial(self._call, handler) if tool.name in ACTIONS else handler

    def reaches_console(self, call: Call) -> Actor:
        """Note that the console is asked now, which makes the record; return the actor to name there."""
        self._at_console.add(call.id)
        return _actor(call)

    async def denied(self, call: Call, problem: Problem) -> None:
        """Record a call that was refused, if its tool is one of these."""
        action = ACTIONS.get(call.tool.name)
        if action is not None:
            target = str(call.arguments.get("server_id", ""))
            await self._audit.refused(_actor(call), action, target, problem.code)

    async def _call(self, handler: Handler, call: Call) -> Result:
        try:
            result = await handler(call)
            if result.problem is not None and call.id not in self._at_console:
                await self.denied(call, result.problem)
            return result
        finally:
            self._at_console.discard(call.id)


def _actor(call: Call) -> Actor:
    return Actor.of(call.caller, call.origin.face, call.origin.address)
