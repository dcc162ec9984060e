"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any

from toolcrib.catalog import Catalog
from toolcrib.console.apps import AppDesk
from toolcrib.console.origin import changes, origin
from toolcrib.console.servers import Servers
from toolcrib.console.users import UserDesk
from toolcrib.errors import Refused
from toolcrib.gateway import Cutting, Gateway
from toolcrib.identity import KeyRing, check_user, digest, new_key
from toolcrib.interfaces import Change, KeyRecord, Reason, Shared, SourceState, Step, Store
from toolcrib.model import Caller, Tool
from toolcrib.names import near
from toolcrib.observe import Journal, summary
from toolcrib.pipeline import fitting
from toolcrib.policy import Contexts, Policy
from toolcrib.supervisor import Supervisor
from toolcrib.version import VERSION

_NAME_LENGTH = 64
_OURS = frozenset({"admin", "anonymous", "trust_header"})
"""Callers that hold no key are known by these names, and what is theirs must not become a key's."""


@dataclass(frozen=True, kw_only=True)
class Console:
    """Everything an operator may ask or change. Faces decide who is one."""

    gateway: Gateway
    catalog: Catalog
    policy: Policy
    contexts: Contexts
    steps: Sequence[Step]
    supervisor: Supervisor
    servers: Servers
    apps: AppDesk
    users: UserDesk
    store: Store
    shared: Shared
    ring: KeyRing
    journal: Journal
    learn: Callable[[str], None]
    """Tells the redactor of a new secret."""
    started: float = field(default_factory=time)

    def status(self) -> dict[str, Any]:
        """Say what runs and what is wrong."""
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
            "withheld": [
                {"name": lost.name, "source": lost.source, "reason": lost.reason}
                for lost in snapshot.withheld
            ],
            "contexts": sorted(self.contexts.contexts),
            "warnings": [*self.servers.config.warnings(), *self._idle_entries()],
            "dropped": self.journal.dropped(),
        }

    def _idle_entries(self) -> list[str]:
        snapshot = self.catalog.snapshot
        idle = self.contexts.idle_entries({**snapshot.tools, **snapshot.doors})
        return [f"contexts.{place}: {entry} matches no tool (yet)" for place, entry in idle]

    def explain(self, name: str, caller: Caller, *, everything: bool = False) -> dict[str, Any]:
        """Say whether this caller may use a tool and why, and which steps a call would pass.

        Without `everything`, a tool hidden from the caller stays unknown; one denied to it does not.
        """
        snapshot = self.catalog.snapshot
        found = snapshot.find(name) or tuple(filter(None, [snapshot.doors.get(name)]))
        reasons = {tool.name: self.policy.why_not(tool, caller) for tool in found}
        shown = [tool for tool in found if everything or not _hidden(reasons[tool.name])]
        shown.sort(key=lambda tool: reasons[tool.name] is not None)
        if not shown:
            return self._unknown(name, caller, everything=everything)
        return self._explained(shown[0], caller)

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
            "steps": list(fitting(self.steps, tool)),
            "source": tool.source,
            "overrides": list(self.catalog.overrides.matching(tool)),
            "repaired": list(self.catalog.snapshot.repaired.get(tool.name, ())),
            "origin": origin(tool, self.catalog, self._state(tool.keeper)),
            "changes": list(changes(tool, self.catalog)),
            "fingerprint": tool.fingerprint,
        }

    def _cut(self, tool: Tool, caller: Caller) -> str | None:
        why = Cutting(self.gateway).why_cut(tool, caller)
        return None if why is None else f"{tool.name} {why}"

    def _state(self, source: str) -> SourceState | None:
        return next((state for state in self.supervisor.states() if state.id == source), None)

    def _unknown(self, name: str, caller: Caller, *, everything: bool) -> dict[str, Any]:
        lost = [each for each in self.catalog.snapshot.withheld if everything and each.name == name]
        if lost:
            return {"name": name, "visible": False, "reason": f"{name} is withheld: {lost[0].reason}"}
        close = near(name, [tool.name for tool in self.gateway.tools(caller)])
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
        """Return the last calls, the newest first."""
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
        """Return how much each tool was used: counts, errors, quantiles, last use."""
        await self.journal.flush()
        rows = await self.store.usage.totals(since=since, tool=tool, app=app, caller=caller)
        return {"tools": summary(rows)}

    def metrics(self) -> bytes:
        """Return the metrics as Prometheus reads them."""
        return self.journal.metrics()

    async def ready(self) -> Mapping[str, Any]:
        """Return what is ready; raise what is not."""
        await self.store.check()
        states = self.supervisor.states()
        return {"ready": True, "sources": {each.id: each.state for each in states}}

    async def keys(self) -> list[dict[str, Any]]:
        """Return every key without the key itself."""
        return [_spelled(each) for each in await self.store.keys.all()]

    async def create_key(
        self,
        name: str,
        *,
        permissions: Sequence[str] = (),
        contexts: Sequence[str] | None = None,
        home: str = "default",
        act_as: bool = False,
        user: str | None = None,
    ) -> dict[str, Any]:
        """Make a key, or one that is a user's own; the answer is the only time it can be read."""
        self._check_key(name, permissions, contexts, home)
        if user is not None:
            check_user(user, "user")
        key = new_key()
        scope = None if contexts is None else frozenset(contexts)
        record = KeyRecord(
            name=name,
            digest=digest(key),
            permissions=frozenset(permissions),
            contexts=scope,
            home=home,
            act_as=act_as,
            user=user,
            created=time(),
        )
        if not await self.store.keys.add(record):
            raise Refused(
                "ALREADY_EXISTS", f"there is or was a key named {name}; choose another name", path="name"
            )
        return await self._made(record, key)

    async def rotate_key(self, name: str) -> dict[str, Any]:
        """Put another key in place of one; the old one ends at once."""
        key = new_key()
        if not await self.store.keys.rotate(name, digest(key), time()):
            raise _no_key(name)
        record = next(each for each in await self.store.keys.all() if each.name == name)
        return await self._made(record, key)

    async def revoke_key(self, name: str) -> None:
        """End a key at once."""
        if not await self.store.keys.revoke(name, time()):
            raise _no_key(name)
        await self._reload_keys()

    async def _made(self, record: KeyRecord, key: str) -> dict[str, Any]:
        self.learn(key)
        await self._reload_keys()
        return {**_spelled(record), "key": key}

    async def _reload_keys(self) -> None:
        self.ring.load(await self.store.keys.all())
        self.shared.publish(Change("keys"))

    def _check_key(
        self, name: str, permissions: Sequence[str], contexts: Sequence[str] | None, home: str
    ) -> None:
        if not name or len(name) > _NAME_LENGTH or not all(c.isalnum() or c in "-_." for c in name):
            message = f"a key's name has 1 to {_NAME_LENGTH} letters, digits, `-`, `_` or `.`"
            raise Refused("INVALID_REQUEST", message, path="name")
        if name in _OURS:
            raise Refused("INVALID_REQUEST", f"{name} is a name of ours; choose another one", path="name")
        for each in permissions:
            if each != "*" and (each.count(":") != 1 or each.startswith(":") or each.endswith(":")):
                raise Refused(
                    "INVALID_REQUEST", f"{each} is no permission; write resource:action", path="permissions"
                )
        for each in (home, *(contexts or ())):
            if each not in self.contexts.contexts:
                raise Refused("NOT_FOUND", f"there is no context named {each}", path="contexts")
        if contexts is not None and home not in contexts:
            raise Refused(
                "INVALID_REQUEST", f"the home context {home} is not among the key's contexts", path="home"
            )


def _hidden(reason: Reason | None) -> bool:
    return reason is not None and reason.effect == "hide"


def _no_key(name: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no live key named {name}", path="name")


def _spelled(record: KeyRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "permissions": sorted(record.permissions),
        "contexts": None if record.contexts is None else sorted(record.contexts),
        "home": record.home,
        "actAs": record.act_as,
        "user": record.user,
        "created": record.created,
        "rotated": record.rotated,
        "revoked": record.revoked,
    }
