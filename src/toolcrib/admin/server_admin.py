"""The MCP server management of the admin API: status, test, changes, reload, and approval of definitions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, cast

from toolcrib.catalog import Catalog, PinChange
from toolcrib.errors import Refused
from toolcrib.interfaces import GIVERS, ConfigReload, ReloadPlan, ServerEntry, SourceState, Withheld
from toolcrib.model import LIBRARY, Actor, AddressGiver, JsonObject
from toolcrib.names import canonical
from toolcrib.observe import Audit
from toolcrib.steps.breaker import Breaker
from toolcrib.supervisor import Supervisor

TEST_SECONDS = 30.0
"""Timeout of a test in seconds, including a start."""
_RECORDED = ("dry_run", "added", "removed", "changed", "applied", "restart")
"""The fields of a reload plan that the audit records."""


@dataclass(frozen=True, kw_only=True)
class ServerAdmin:
    """Manages MCP servers. Frontends authorize the caller."""

    catalog: Catalog
    supervisor: Supervisor
    breaker: Breaker
    config: ConfigReload
    audit: Audit
    audited: Callable[[JsonObject], JsonObject]
    """Returns the auditable part of a server's settings: no arguments, values or URL paths."""

    def status(self) -> dict[str, Any]:
        """Return the status of every server, and the server and tool behind each exposed name."""
        states = {state.id: state for state in self.supervisor.states()}
        servers = self.config.servers()
        routes = {
            tool.exposed: {"server": tool.source, "tool": tool.local}
            for tool in self.catalog.snapshot.tools.values()
            if tool.source in servers
        }
        return {
            "enabled": self.config.enabled,
            "servers": {name: self._described(entry, states.get(name)) for name, entry in servers.items()},
            "tool_routes": routes,
        }

    def _described(self, entry: ServerEntry, state: SourceState | None) -> dict[str, Any]:
        snapshot = self.catalog.snapshot
        mine = [tool for tool in snapshot.tools.values() if tool.source == entry.id]
        withheld = _reasons(snapshot.withheld, entry.id)
        details = dict(state.details) if state is not None else {}
        return {
            "enabled": entry.enabled,
            "transport": entry.transport,
            "added": entry.added,
            "pin": entry.pin,
            "state": "stopped" if state is None else state.state,
            "up": state is not None and state.state == "up",
            "last_error": (entry.barred or None) if state is None else state.last_error,
            "restarts": 0 if state is None else state.restarts,
            "breaker": self.breaker.states().get(entry.id, "closed"),
            "discovered_tools": sorted({tool.local for tool in mine} | withheld.keys()),
            "registered_tools": sorted(tool.exposed for tool in mine),
            "withheld_tools": withheld,
            "shadowed_tools": _reasons(snapshot.shadowed, entry.id),
            "changed_tools": sorted(tool.exposed for tool in mine if tool.changed),
            "definition_changes": self.catalog.definition_changes[entry.id],
            "degraded": any(tool.degraded for tool in mine),
            "stderr_tail": details.pop("stderr_tail", []),
            "details": details,
        }

    async def test(self, server_id: str, *, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Fetch a server's tools now; start it first if it is not running."""
        async with self.audit.action(actor, "servers.test", server_id) as action:
            self._entry(server_id)
            answer = await self._tested(server_id)
            action.after = {"ok": answer["ok"], "error": answer.get("error")}
            return answer

    async def _tested(self, server_id: str) -> dict[str, Any]:
        if server_id not in {state.id for state in self.supervisor.states()}:
            why = self._why_not_run(server_id)
            return {"ok": False, "tools": [], "changed_tools": [], "error": why, "latency_ms": 0.0}
        started = perf_counter()
        state = await self.supervisor.test(server_id, TEST_SECONDS)
        ok = state.state == "up" and "fault" not in state.details
        if ok:
            self.breaker.forget(server_id)
        answer: dict[str, Any] = {
            "ok": ok,
            "tools": sorted(self._names(server_id)) if ok else [],
            "changed_tools": sorted(self._names(server_id, changed=True)) if ok else [],
            "latency_ms": round((perf_counter() - started) * 1000, 1),
        }
        return answer if ok else {**answer, "error": state.last_error or f"it is {state.state}"}

    async def add(self, server_id: str, settings: JsonObject, *, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Add a server, persistently; its tools can be called when this returns.

        Its address is checked against the rules for the key that added it, now and at every connect.
        """
        async with self.audit.action(actor, "servers.add", server_id) as action:
            canonical(server_id, "tool")
            if server_id in self.config.servers():
                raise _exists(server_id)

            def applied(plan: ReloadPlan) -> None:
                del plan
                action.after = self.audited(settings)
                action.applied()

            await self.config.amend(_with_server(server_id, settings, actor.caller.giver), applied)
            described = self.status()["servers"][server_id]
            if described["details"].get("is_own_gateway"):
                await self.config.amend(_without_server(server_id))
                action.is_applied = False
                raise _is_ourselves(server_id, described["last_error"])
            return {
                "server": server_id,
                "state": described["state"],
                "tools": described["registered_tools"],
                "error": None if described["up"] else described["last_error"],
            }

    async def remove(self, server_id: str, *, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Remove a server that was added at run time; those in the config file can be removed only there."""
        async with self.audit.action(actor, "servers.remove", server_id) as action:
            entry = self._entry(server_id)
            action.before = asdict(entry)
            if not entry.added:
                message = f"{server_id} is in the config file; take it out there, then reload"
                raise Refused("SCOPE_DENIED", message, path="server_id")
            plan = await self.config.amend(_without_server(server_id), action.applied)
            return _plan_payload(plan)

    async def reload(self, *, dry_run: bool = False, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Reload the config and apply the difference; return what changes, or with `dry_run` would change."""
        async with self.audit.action(actor, "config.reload") as action:

            def applied(plan: ReloadPlan) -> None:
                action.after = _recorded(_plan_payload(plan, dry_run=dry_run))
                action.applied()

            plan = _plan_payload(await self.config.reload(dry_run=dry_run, applied=applied), dry_run=dry_run)
            action.after = _recorded(plan)
            return plan

    def pins(self) -> list[dict[str, Any]]:
        """Return the tools with a definition other than the trusted one."""
        return [
            {"name": each.name, "trusted": each.trusted, "seal": each.seal, "mode": each.mode}
            for each in self.catalog.snapshot.changed.values()
        ]

    async def approve(self, name: str, seal: str | None = None, *, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Trust a tool's current definition; with a `seal`, only if it still has that hash."""
        async with self.audit.action(actor, "pins.approve", name) as action:
            changed = self._changed(name)
            action.target = changed.name
            if seal is not None and seal != changed.seal:
                message = f"{changed.name} has changed again; look at it, then approve {changed.seal}"
                raise Refused("INVALID_REQUEST", message, path="seal")
            action.before, action.after = {"seal": changed.trusted}, {"seal": changed.seal}
            pin = _with_pin(changed.name, changed.seal, self.config.pins)
            await self.config.amend(pin, action.applied)
            return {"name": changed.name, "seal": changed.seal}

    def _changed(self, name: str) -> PinChange:
        """Return the changed definition of the tool that owns this name."""
        snapshot = self.catalog.snapshot
        # Of a contested flat name only the owner: an approval must not apply to another tool.
        found = [tool.name for tool in snapshot.claimants(name)[:1] if tool.name in snapshot.changed]
        if not found:
            raise Refused("NOT_FOUND", f"there is no changed definition of {name}", path="name")
        changed = snapshot.changed[found[0]]
        if not changed.seal:
            message = f"the definition of {changed.name} is too large to be hashed; `pin: notify` serves it"
            raise Refused("INVALID_REQUEST", message, path="name")
        return changed

    def _names(self, server_id: str, *, changed: bool = False) -> list[str]:
        tools = self.catalog.snapshot.tools.values()
        return [tool.exposed for tool in tools if tool.source == server_id and (tool.changed or not changed)]

    def _entry(self, server_id: str) -> ServerEntry:
        entry = self.config.servers().get(server_id)
        if entry is None:
            raise Refused("NOT_FOUND", f"there is no server named {server_id}", path="server_id")
        return entry

    def _why_not_run(self, server_id: str) -> str:
        entry = self._entry(server_id)
        if not self.config.enabled:
            return "MCP servers are switched off; set `mcp.enabled: true` in the config, then reload"
        return entry.barred or "it is not enabled; set `enabled: true` in the config, then reload"


def _plan_payload(plan: ReloadPlan, **more: Any) -> dict[str, Any]:
    return {**more, **asdict(plan)}


def _recorded(plan: Mapping[str, Any]) -> JsonObject:
    return {name: plan[name] for name in _RECORDED}


def _exists(server_id: str) -> Refused:
    message = f"there is a server named {server_id}; choose another name, or remove that one first"
    return Refused("ALREADY_EXISTS", message, path="server_id")


def _is_ourselves(server_id: str, message: str) -> Refused:
    where = f"mcp.servers.{server_id}.url"
    fault = {"where": where, "message": message, "file": None, "line": None}
    return Refused("INVALID_REQUEST", message, path=where, details={"faults": [fault]})


Change = Callable[[JsonObject], JsonObject]


def _with_server(server_id: str, settings: JsonObject, giver: AddressGiver) -> Change:
    def change(overlay: JsonObject) -> JsonObject:
        servers = _servers(overlay)
        if server_id in servers:  # a concurrent request has added it
            raise _exists(server_id)
        givers = {**_givers(overlay), server_id: giver}
        return {**overlay, "mcp": {"servers": {**servers, server_id: settings}}, GIVERS: givers}

    return change


def _without_server(server_id: str) -> Change:
    def change(overlay: JsonObject) -> JsonObject:
        servers = {name: each for name, each in _servers(overlay).items() if name != server_id}
        # Approvals of its definitions must not apply to another server of that name.
        pins = {name: seal for name, seal in _pins(overlay).items() if name.partition(":")[0] != server_id}
        remaining: JsonObject = {"pins": pins} if "pins" in overlay else {}
        if GIVERS in overlay:
            givers = {name: giver for name, giver in _givers(overlay).items() if name != server_id}
            remaining = {**remaining, GIVERS: givers}
        return {**overlay, "mcp": {"servers": servers}, **remaining}

    return change


def _with_pin(name: str, seal: str, in_force: Mapping[str, str]) -> Change:
    def change(overlay: JsonObject) -> JsonObject:
        pins = _pins(overlay)
        if name in in_force and in_force[name] != pins.get(name):
            message = f"{name} is pinned in the config file; change `pins` there, then reload"
            raise Refused("SCOPE_DENIED", message, path="name")
        return {**overlay, "pins": {**pins, name: seal}}

    return change


def _pins(overlay: JsonObject) -> Mapping[str, str]:
    return cast("Mapping[str, str]", overlay.get("pins", {}))


def _givers(overlay: JsonObject) -> Mapping[str, str]:
    return cast("Mapping[str, str]", overlay.get(GIVERS, {}))


def _servers(overlay: JsonObject) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", overlay.get("mcp", {}).get("servers", {}))


def _reasons(tools: Iterable[Withheld], source: str) -> dict[str, str]:
    """Return the reasons for the tools of one source, by local name."""
    return {each.name.partition(":")[2]: each.reason for each in tools if each.source == source}
