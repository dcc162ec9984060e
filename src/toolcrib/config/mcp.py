"""MCP servers in the config: transport, restart policy, process limits, and the tools to expose."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from toolcrib.config.value_types import (
    BLANK_AS_UNSET,
    Argument,
    EnvName,
    HeaderName,
    HeaderValue,
    Milliseconds,
    SafeName,
    ServerAddress,
    Text,
    Whole,
)
from toolcrib.names import snake_case

RESERVED_SERVER_IDS = frozenset({"local", "crib", "tools", "demo"})
"""Ids of the gateway's own sources."""

_SERVER_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def server_id(name: str) -> str:
    """Return the id of a server: its name if valid as an id, else in snake case, which may be empty."""
    return name if _SERVER_ID.fullmatch(name) else snake_case(name)


def _server_name(name: str) -> str:
    if not name.isprintable() or not _SERVER_ID.fullmatch(server_id(name)):
        raise ValueError("is not a valid server name; use letters, digits, -, _ and ., at most 63 of them")
    return name


def _refuse_text(command: object) -> object:
    if isinstance(command, str):
        raise ValueError("must be a list of the program and its arguments, such as [npx, -y, some-server]")  # noqa: TRY004 - only a ValueError becomes a fault
    return command


def _with_program(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0].strip():
        raise ValueError("must begin with the name of a program")
    return command


ServerName = Annotated[str, AfterValidator(_server_name)]
Command = Annotated[
    tuple[Argument, ...], BeforeValidator(_refuse_text), Field(min_length=1), AfterValidator(_with_program)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Restart policy of a server."""

    enabled: Annotated[bool, "restarts the server, or reconnects to it"] = True
    max_restarts: Annotated[
        Annotated[Whole, Field(ge=0, le=1_000)],
        "consecutive failed starts (http and sse: failed handshakes) before the server is in a crash loop",
    ] = 5
    backoff_ms: Annotated[
        Milliseconds,
        "delay before the first restart (http and sse: after a failed handshake), doubled up to 30 s",
    ] = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class McpProcessLimits:
    """Resource limits of each process of a server, enforced by the operating system."""

    memory_mb: Annotated[
        Annotated[Whole, Field(ge=16, le=1 << 24)] | None,
        BLANK_AS_UNSET,
        "address space in MiB, which is more than the memory in use; Linux only",
    ] = None
    cpu_seconds: Annotated[
        Annotated[Whole, Field(ge=1, le=31_536_000)] | None, BLANK_AS_UNSET, "total CPU time in seconds"
    ] = None
    open_files: Annotated[
        Annotated[Whole, Field(ge=16, le=1 << 20)] | None, BLANK_AS_UNSET, "open files, pipes and sockets"
    ] = None
    processes: Annotated[
        Annotated[Whole, Field(ge=1, le=1 << 22)] | None,
        BLANK_AS_UNSET,
        "processes and threads of the gateway's user, counted over all programs; has no effect for root",
    ] = None
    file_size_mb: Annotated[
        Annotated[Whole, Field(ge=1, le=1 << 24)] | None,
        BLANK_AS_UNSET,
        "maximum size in MiB of a file that it writes",
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Defaults for the tools of a server."""

    timeout_ms: Annotated[Milliseconds, "time limit of one attempt"] = 10_000
    slow_response_threshold_ms: Annotated[
        Milliseconds | None, BLANK_AS_UNSET, "time after which a running call is announced as slow"
    ] = None
    slow_response_message: Annotated[Text | None, BLANK_AS_UNSET, "text of that announcement"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """One tool of a server to expose, with its settings."""

    name: Annotated[Text, "name of the tool on the server"]
    expose_as: Annotated[SafeName | None, BLANK_AS_UNSET, "safe name for the tool"] = None
    description: Annotated[
        Text | None, BLANK_AS_UNSET, "description for models, instead of the tool's own"
    ] = None
    speech_field: Annotated[Text | None, BLANK_AS_UNSET, "field of the result that is read aloud"] = None
    speech_template: Annotated[
        Text | None, BLANK_AS_UNSET, "sentence to read aloud, with {fields} of the result"
    ] = None
    timeout_ms: Annotated[Milliseconds | None, BLANK_AS_UNSET, "time limit of one attempt"] = None
    slow_response_threshold_ms: Annotated[
        Milliseconds | None, BLANK_AS_UNSET, "time after which a running call is announced as slow"
    ] = None
    slow_response_message: Annotated[Text | None, BLANK_AS_UNSET, "text of that announcement"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One MCP server."""

    transport: Annotated[Literal["stdio", "http", "sse"], "transport of the server"]
    enabled: Annotated[
        bool, "uses the server; if false, its settings are validated, but it is not started"
    ] = True
    command: Annotated[Command, "program and arguments as a list, for stdio"] = field(default=(), repr=False)
    url: Annotated[ServerAddress | None, BLANK_AS_UNSET, "URL, for http and sse"] = field(
        default=None, repr=False
    )
    headers: Annotated[Mapping[HeaderName, HeaderValue], "headers to send, for http and sse"] = field(
        default_factory=dict[str, str], repr=False
    )
    env: Annotated[Mapping[EnvName, Argument], "environment variables of the program, for stdio"] = field(
        default_factory=dict[str, str], repr=False
    )
    cwd: Annotated[
        Annotated[Argument, Field(min_length=1)] | None,
        BLANK_AS_UNSET,
        "working directory of the program, relative to the config file's folder; for stdio",
    ] = field(default=None, repr=False)
    start: Annotated[
        Literal["eager", "lazy"], "eager: starts with the gateway; lazy: starts on first use"
    ] = "eager"
    idle_stop_ms: Annotated[
        Milliseconds | None,
        BLANK_AS_UNSET,
        "stops the program after this time without a call; the next call starts it; for stdio",
    ] = None
    start_timeout_ms: Annotated[Milliseconds, "time limit from the start until the tools are listed"] = 30_000
    poll_ms: Annotated[
        Annotated[Whole, Field(ge=100, le=86_400_000)] | None,
        BLANK_AS_UNSET,
        "interval of tool list refreshes; unset: one minute for servers that do not announce changes",
    ] = None
    relay: Annotated[
        tuple[Literal["elicitation", "sampling", "roots"], ...] | None,
        BLANK_AS_UNSET,
        "requests of the server that are relayed to callers; unset: all, except roots for stdio",
    ] = None
    max_connections: Annotated[
        Annotated[Whole, Field(ge=1, le=1_000)] | None,
        BLANK_AS_UNSET,
        "connections for callers that can answer requests, plus the shared one; unset: 8 for stdio, else 32",
    ] = None
    connection_idle_ms: Annotated[
        Milliseconds, "time after which such a connection (stdio: process) is closed without a call"
    ] = 24_000
    limits: Annotated[
        McpProcessLimits | None,
        BLANK_AS_UNSET,
        "resource limits of its processes, instead of `mcp.limits`; for stdio",
    ] = None
    restart: Annotated[Restart, "restart policy"] = Restart()
    defaults: Annotated[Defaults, "defaults for its tools"] = Defaults()
    pin: Annotated[
        Literal["strict", "notify", "off"] | None,
        BLANK_AS_UNSET,
        "when a tool definition changes: strict hides the tool until approved, notify reports it, off "
        "accepts it; unset: notify for stdio servers of the config file, else strict",
    ] = None
    tools: Annotated[tuple[McpTool, ...], "the tools to expose; empty: all"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSection:
    """The MCP servers whose tools are served."""

    enabled: Annotated[bool, "starts and lists MCP servers"] = True
    allow_stdio: Annotated[bool, "allows stdio servers to be added at run time"] = False
    grace_ms: Annotated[
        Annotated[Whole, Field(ge=0, le=86_400_000)],
        "time that the tools of an unavailable server stay listed",
    ] = 600_000
    max_copies: Annotated[
        Annotated[Whole, Field(ge=1, le=1_000)],
        "maximum processes for callers that can answer requests, of all stdio servers together",
    ] = 32
    limits: Annotated[McpProcessLimits, "default resource limits of the processes of a server; for stdio"] = (
        McpProcessLimits()
    )
    servers: Annotated[Mapping[ServerName, McpServer], "the servers, by a name that becomes the id"] = field(
        default_factory=dict[str, McpServer]
    )
