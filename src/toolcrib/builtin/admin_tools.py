"""Tools for operators: `mcp_add_server` and `mcp_list_servers`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from toolcrib.admin import ServerAdmin
from toolcrib.errors import Refused
from toolcrib.interfaces import Handler
from toolcrib.model import Actor, Call, JsonObject, Problem, Result, Tool
from toolcrib.observe import Audit
from toolcrib.sdk import AnyTool, Options, Registry, ToolResult

# --- Audits refused calls of the core tools that administer the gateway; the console records the others ---

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


# --- Tools that add an MCP server while the gateway runs, and say how the servers there are doing ---

Answer = ToolResult[dict[str, Any]]

# An address or an argument may hold a token, and what is only written is not logged.
_UNTOLD = {"writeOnly": True}
_SECRETS = {"type": "object", "additionalProperties": {"type": "string"}, **_UNTOLD}
_ARGUMENT = {"type": "string", "minLength": 1, "maxLength": 4096}
_WAIT = {"type": "integer", "minimum": 1, "maximum": 86_400_000}

_ADD: JsonObject = {
    "name": "mcp_add_server",
    "description": (
        "Add an MCP server to this gateway; it stays after a restart.\n\n"
        "Use it when someone asks to connect a server by its address, such as https://mcp.example.com/mcp,"
        " or by its command where the operator allows that. Returns the state of the server, the names of"
        " the tools that can be called now, and the error where it did not start; it is then tried again."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "server_id": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$",
                "description": "A short name for it, such as github: the first half of its tools' names.",
            },
            "transport": {
                "enum": ["http", "sse", "stdio"],
                "description": "How to talk to it; stdio where a command is given, else http.",
            },
            "url": {
                "type": "string",
                "maxLength": 2048,
                "description": "Its address, for http and sse.",
                **_UNTOLD,
            },
            "headers": {**_SECRETS, "description": "Headers to send, such as Authorization; kept secret."},
            "command": {
                "type": ["string", "array"],
                "minLength": 1,
                "minItems": 1,
                "maxItems": 256,
                "items": _ARGUMENT,
                "description": "The program to run, or the program and its arguments, for stdio.",
                **_UNTOLD,
            },
            "args": {
                "type": "array",
                "maxItems": 256,
                "items": _ARGUMENT,
                "description": "Arguments of the program, for stdio.",
                **_UNTOLD,
            },
            "env": {**_SECRETS, "description": "Variables the program gets, for stdio; kept secret."},
            "cwd": {**_ARGUMENT, "description": "The directory the program runs in, for stdio."},
            "start": {
                "enum": ["eager", "lazy"],
                "description": "Start it now and with the gateway (eager, the default), or on first use.",
            },
            "start_timeout_ms": {
                **_WAIT,
                "description": "How long it may take to start and list its tools, in milliseconds.",
            },
            "idle_stop_ms": {
                **_WAIT,
                "description": "Stop it after this idle time in milliseconds; the next call starts it.",
            },
            "pin": {
                "enum": ["strict", "notify", "off"],
                "description": "What happens when the definition of one of its tools changes.",
            },
        },
        "required": ["server_id"],
        "additionalProperties": False,
    },
}
_ADD_OPTIONS: Options = {
    "title": "Add an MCP server",
    "category": "mutation",
    "response_time": "slow",
    "permissions": ["crib:servers"],
    "tags": ["mcp", "servers", "core"],
    "timeout": 60.0,
    "examples": [
        {
            "description": "Connect a server by its address",
            "params": {"server_id": "weather", "url": "https://weather.example.com/mcp"},
            "expectedResult": {
                "server": "weather",
                "state": "up",
                "tools": ["mcp_weather_forecast"],
                "error": None,
            },
        }
    ],
}

_LIST: JsonObject = {
    "name": "mcp_list_servers",
    "description": (
        "List the MCP servers of this gateway and how each is doing.\n\n"
        "Use it to see which servers there are, why a tool is missing, or whether a server has come back."
        " Returns for each its state, the names of its tools, what is withheld and why, and its last error."
    ),
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
}
_LIST_OPTIONS: Options = {
    "title": "List the MCP servers",
    "category": "query",
    "response_time": "fast",
    "permissions": ["crib:status"],
    "tags": ["mcp", "servers", "core"],
    "examples": [
        {
            "description": "See which servers there are",
            "params": {},
            "expectedResult": {
                "enabled": True,
                "servers": [
                    {
                        "id": "weather",
                        "transport": "http",
                        "enabled": True,
                        "added": True,
                        "state": "up",
                        "up": True,
                        "restarts": 0,
                        "tools": ["mcp_weather_forecast"],
                        "withheld": {},
                        "error": None,
                    }
                ],
            },
        }
    ],
}


def server_tools(
    servers: ServerAdmin, actor: Callable[[], Actor], check_reader: Callable[[], None]
) -> tuple[AnyTool, ...]:
    """Create the tools over the admin API of the servers.

    `actor` returns the caller of the running tool; `check_reader` refuses callers that may not list servers.
    """

    async def add(arguments: JsonObject) -> Answer:
        settings = dict(arguments)
        server_id = str(settings.pop("server_id"))
        try:
            server_settings = _settings(settings)
            entry = await servers.add(server_id, server_settings, actor=actor())
        except Refused as error:
            if error.problem.code == "PERMISSION_DENIED":
                raise _of_argument(error.problem, server_id) from None
            if error.problem.code != "INVALID_REQUEST":
                raise
            raise _of_arguments(error.problem, server_id) from None
        return ToolResult(data=entry, message=_added_message(entry))

    async def list_all(arguments: JsonObject) -> Answer:
        del arguments
        check_reader()
        return _listed(servers.status())

    registry = Registry()
    registry.register_tool(_ADD, add, **_ADD_OPTIONS)
    registry.register_tool(_LIST, list_all, **_LIST_OPTIONS)
    return registry.get_all()


def _settings(arguments: dict[str, Any]) -> JsonObject:
    """Convert arguments to settings of the config: one list for program and arguments, and a transport."""
    more = arguments.pop("args", [])
    if "command" in arguments:
        first = arguments["command"]
        arguments["command"] = [*([first] if isinstance(first, str) else first), *more]
    elif more:
        raise Refused("INVALID_ARGUMENTS", "args are there without a command; give command", path="args")
    return {"transport": "stdio" if "command" in arguments else "http", **arguments}


def _of_argument(found: Problem, server_id: str) -> Refused:
    """Name the argument instead of the setting that it became."""
    path = (found.path or "").replace(f"mcp.servers.{server_id}", "arguments", 1)
    return Refused(found.code, found.message, path=path, details=found.details)


def _of_arguments(found: Problem, server_id: str) -> Refused:
    """Convert the faults of settings to faults of arguments, which the agent can correct."""
    place = f"mcp.servers.{server_id}"
    faults = [(fault["where"], fault["message"]) for fault in found.details.get("faults", ())]
    if not faults or not all(f"{where}.".startswith(f"{place}.") for where, _ in faults):
        return Refused("INVALID_ARGUMENTS", found.message, path=found.path, details=found.details)
    argument_faults = [(where[len(place) + 1 :] or "server_id", message) for where, message in faults]
    text, path = "; ".join(map(" ".join, argument_faults)), f"arguments.{argument_faults[0][0]}"
    return Refused("INVALID_ARGUMENTS", text, path=path, details=found.details)


def _added_message(entry: Mapping[str, Any]) -> str:
    added = f"I added {entry['server']}"
    if entry["state"] == "up":
        return f"{added}. {_counted(len(entry['tools']))} can be used now."
    if entry["error"]:
        return f"{added}, but it does not run yet. It is tried again."
    return (
        f"{added}. It starts with the first call." if entry["state"] == "asleep" else f"{added}. It starts."
    )


def _counted(tools: int) -> str:
    return "One tool" if tools == 1 else f"{tools or 'No'} tools"


def _listed(status: Mapping[str, Any]) -> Answer:
    rows = [_row(name, server) for name, server in status["servers"].items()]
    up = sum(row["up"] for row in rows)
    message = f"{up} of {len(rows)} MCP servers are up." if rows else "There are no MCP servers."
    return ToolResult(data={"enabled": status["enabled"], "servers": rows}, message=message)


def _row(name: str, server: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent needs; what a server wrote to its stderr is for operators."""
    copied = ("transport", "enabled", "added", "state", "up", "restarts")
    return {
        "id": name,
        **{field: server[field] for field in copied},
        "tools": server["registered_tools"],
        "withheld": server["withheld_tools"],
        "error": server["last_error"],
    }
