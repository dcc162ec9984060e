"""Operations for operators on the whole gateway: status, explain, test calls, usage and reload."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import time
from typing import Any

import orjson

from toolcrib.admin.app_admin import AppAdmin
from toolcrib.admin.key_admin import KeyAdmin
from toolcrib.admin.server_admin import ServerAdmin
from toolcrib.admin.user_admin import UserAdmin
from toolcrib.apps.definition import tool_of
from toolcrib.catalog import Catalog, ToolOverride
from toolcrib.formats import PROVIDERS, McpFormat
from toolcrib.gateway import Gateway, ToolSelection
from toolcrib.hints.hint_text import estimated_tokens
from toolcrib.interfaces import AppRecord, Reason, SourceState, Step, Withheld
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.names import similar_names
from toolcrib.observe import CallRecorder, summary
from toolcrib.pipeline import step_names
from toolcrib.policy import Policy
from toolcrib.supervisor import Supervisor
from toolcrib.version import VERSION

# --- Describes the origin of a tool, and how the served definition differs from the source's ---

_SHOWN_DETAILS = ("transport", "era", "revision", "server_name", "server_version")
_COMPARED_FIELDS = {"description": "description", "title": "title"}


def origin(tool: Tool, catalog: Catalog, state: SourceState | None) -> dict[str, Any]:
    """Return a tool's source, how it is connected, and whether its definition is the trusted one."""
    details: Mapping[str, Any] = {} if state is None else state.details
    pin = catalog.snapshot.changed.get(tool.name)
    return {
        "source": tool.source,
        "family": tool.family,
        "state": None if state is None else state.state,
        "degraded": tool.degraded,
        **{key: details[key] for key in _SHOWN_DETAILS if details.get(key)},
        **({} if pin is None else {"pin": {"trusted": pin.trusted, "now": pin.seal, "mode": pin.mode}}),
    }


def changes(tool: Tool, catalog: Catalog) -> Iterator[str]:
    """Yield every difference between the served tool and its source's definition."""
    yield from catalog.snapshot.repaired.get(tool.name, ())
    for pattern in catalog.overrides.matching(tool):
        yield f"the override {pattern} sets {', '.join(_set_fields(catalog.overrides.overrides[pattern]))}"
    definition = catalog.definition(tool.name)
    if definition is not None:
        yield from _differences(tool, definition)


def _set_fields(override: ToolOverride) -> list[str]:
    return [each.name for each in fields(override) if getattr(override, each.name) is not None]


def _differences(tool: Tool, definition: JsonObject) -> Iterator[str]:
    for key, name in _COMPARED_FIELDS.items():
        declared = definition.get(key)
        if declared is not None and declared != getattr(tool, name):
            yield f"its {key} is not the server's own"
    if tool.expose_as is not None:
        yield f"it is exposed as {tool.expose_as}"


# --- The operators' part of the admin API: status, calls, usage, audit, and explanations of visibility ---


@dataclass(frozen=True, kw_only=True)
class Admin(KeyAdmin):
    """Everything an operator may read or change. Frontends authorize the caller."""

    gateway: Gateway
    catalog: Catalog
    policy: Policy
    steps: Sequence[Step]
    supervisor: Supervisor
    servers: ServerAdmin
    apps: AppAdmin
    users: UserAdmin
    journal: CallRecorder
    started: float = field(default_factory=time)

    def status(self, caller: Caller | None = None) -> dict[str, Any]:
        """Return the gateway's status and warnings; a caller confined to contexts gets only their part."""
        full = self._status()
        return full if caller is None or not caller.narrowed else self._confined(full, caller)

    def reachable(self, caller: Caller) -> frozenset[str]:
        """Return the canonical names of the tools in the contexts that a caller may enter."""
        entered = [each for name, each in self.contexts.contexts.items() if caller.may_enter(name)]
        tools = self.catalog.snapshot.tools.values()
        return frozenset(tool.name for tool in tools if any(each.selects(tool) for each in entered))

    def confined_app(self, app: AppRecord, caller: Caller) -> AppRecord:
        """Return an app without tools outside the caller's contexts, unless the caller owns the app."""
        if not caller.narrowed or app.owner == caller.key:
            return app
        names = self.reachable(caller)
        return replace(app, tools=tuple(each for each in app.tools if tool_of(app, each).name in names))

    def _confined(self, full: dict[str, Any], caller: Caller) -> dict[str, Any]:
        names, tools = self.reachable(caller), self.catalog.snapshot.tools
        counts = Counter(tools[name].source for name in names if name in tools)
        sources = [{**each, "tools": counts[each["id"]]} for each in full["sources"] if each["id"] in counts]
        mine = [name for name in full["contexts"] if caller.may_enter(name)]
        # Omitted: withheld and shadowed tools and warnings name tools and settings of any context.
        silent: JsonObject = {"withheld": [], "shadowed": [], "warnings": []}
        return {**full, **silent, "tools": len(names), "sources": sources, "contexts": mine}

    def _status(self) -> dict[str, Any]:
        snapshot = self.catalog.snapshot
        degraded = {tool.source for tool in snapshot.tools.values() if tool.degraded}
        return {
            "service": "toolcrib",
            "version": VERSION,
            "uptime": round(time() - self.started, 1),
            "catalog": snapshot.version,
            "tools": len(snapshot.tools),
            "sources": [
                {
                    "id": each.id,
                    "state": each.state,
                    "tools": each.tools,
                    "restarts": each.restarts,
                    "family": each.family,
                    "degraded": each.id in degraded,
                    "lastError": each.last_error,
                }
                for each in self.supervisor.states()
            ],
            "withheld": _reported(snapshot.withheld),
            "shadowed": _reported(snapshot.shadowed),
            "contexts": sorted(self.contexts.contexts),
            "warnings": [*self.servers.config.warnings(), *self.apps.remarks(), *self._idle_entries()],
            "dropped": self.journal.dropped(),
        }

    def _idle_entries(self) -> list[str]:
        snapshot = self.catalog.snapshot
        idle = self.contexts.idle_entries({**snapshot.tools, **snapshot.pseudo_tools})
        return [f"contexts.{place}: {entry} matches no tool (yet)" for place, entry in idle]

    def explain(self, name: str, caller: Caller, *, everything: bool = False) -> dict[str, Any]:
        """Explain whether this caller may use a tool and why, and which steps a call would pass.

        Without `everything`, a tool hidden from the caller is reported as unknown; one denied to it is not.
        """
        snapshot = self.catalog.snapshot
        tool = self.policy.owner(snapshot.claimants(name), caller) or snapshot.pseudo_tools.get(name)
        if tool is None and everything:
            tool = next(iter(snapshot.find(name)), None)
        if tool is None or (tool.name not in snapshot.tools and tool.name not in snapshot.pseudo_tools):
            return self._unknown(name, caller, everything=everything)
        if _hidden(self.policy.why_not(tool, caller)) and not everything:
            return self._unknown(name, caller, everything=False)
        return self._explained(tool, caller)

    def _explained(self, tool: Tool, caller: Caller) -> dict[str, Any]:
        reason = self.policy.why_not(tool, caller)
        verdicts = [(rule.name, rule.why_not(tool, caller)) for rule in self.policy.rules]
        return {
            "name": tool.name,
            "names": {
                "qualified": tool.name,
                "safe": tool.exposed,
                "flat": tool.local,
                "aliases": list(tool.aliases),
            },
            "visible": reason is None,
            "reason": None if reason is None else f"{tool.name} {reason.message}",
            "cut": None if reason is not None else self._cut(tool, caller),
            "rules": [
                {"rule": rule, "verdict": "yes" if why is None else why.message} for rule, why in verdicts
            ],
            "caller": {"id": caller.id, "context": caller.context, "permissions": sorted(caller.permissions)},
            "hints": self.gateway.hint_setting(caller),
            "declarationTokens": self._declaration_tokens(tool, caller),
            "steps": list(step_names(self.steps, tool)),
            "source": tool.source,
            "overrides": list(self.catalog.overrides.matching(tool)),
            "repaired": list(self.catalog.snapshot.repaired.get(tool.name, ())),
            "origin": origin(tool, self.catalog, self._state(tool.keeper)),
            "changes": list(changes(tool, self.catalog)),
            "fingerprint": tool.fingerprint,
        }

    def _cut(self, tool: Tool, caller: Caller) -> str | None:
        why = ToolSelection(self.gateway).why_cut(tool, caller)
        return None if why is None else f"{tool.name} {why}"

    def _declaration_tokens(self, tool: Tool, caller: Caller) -> int:
        """Estimate the tokens that the tool's declaration takes in the prompt of the context's models."""
        context = self.gateway.context(caller)
        provider = PROVIDERS.get((None if context is None else context.provider) or McpFormat.name)
        declared: JsonObject = {} if provider is None else provider.tool(tool, tool.exposed)
        return estimated_tokens(orjson.dumps(declared).decode())

    def _state(self, source: str) -> SourceState | None:
        return next((state for state in self.supervisor.states() if state.id == source), None)

    def _unknown(self, name: str, caller: Caller, *, everything: bool) -> dict[str, Any]:
        lost = [each for each in self.catalog.snapshot.withheld if everything and each.name == name]
        if lost:
            return {"name": name, "visible": False, "reason": f"{name} is withheld: {lost[0].reason}"}
        close = similar_names(name, [tool.name for tool in self.gateway.tools(caller)])
        reason = f"there is no tool named {name}" + (f"; did you mean {', '.join(close)}?" if close else "")
        return {"name": name, "visible": False, "reason": reason, "near": list(close)}

    async def calls(
        self,
        *,
        limit: int = 100,
        tool: str | None = None,
        caller: str | None = None,
        before: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return the most recent calls, newest first."""
        await self.journal.flush()
        rows = await self.store.calls.recent(limit=limit, tool=tool, caller=caller, before=before)
        return [
            {
                "id": row.id,
                "at": row.at,
                "tool": row.tool,
                "caller": row.caller,
                "user": row.user,
                "context": row.context,
                "face": row.face,
                "outcome": row.outcome,
                "code": row.code,
                "milliseconds": row.milliseconds,
                "cached": row.cached,
                "traceId": row.trace,
            }
            for row in rows
        ]

    async def usage(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> dict[str, Any]:
        """Return the usage of each tool: counts, errors, quantiles, last use."""
        await self.journal.flush()
        rows = await self.store.usage.totals(since=since, tool=tool, app=app, caller=caller)
        return {"tools": summary(rows)}

    def metrics(self) -> bytes:
        """Return the metrics in Prometheus text format."""
        return self.journal.metrics()

    async def ready(self) -> Mapping[str, Any]:
        """Return the readiness of the sources; raise if the store cannot be read or written."""
        await self.store.check()
        await self.store.check_writes()
        states = self.supervisor.states()
        return {"ready": True, "sources": {each.id: each.state for each in states}}

    async def audit_records(
        self,
        *,
        limit: int = 100,
        before: int | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: float | None = None,
    ) -> list[JsonObject]:
        """Return audit records, newest first."""
        rows = await self.store.audit.recent(
            limit=limit, before=before, actor=actor, action=action, since=since
        )
        return [row.as_json() for row in rows]


def _hidden(reason: Reason | None) -> bool:
    return reason is not None and reason.effect == "hide"


def _reported(tools: Iterable[Withheld]) -> list[dict[str, str]]:
    return [{"name": each.name, "source": each.source, "reason": each.reason} for each in tools]
