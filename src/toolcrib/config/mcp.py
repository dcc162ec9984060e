"""MCP servers in the config: how each is reached, kept alive, and which of its tools are let through."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from toolcrib.config.value_types import (
    BLANK,
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
from toolcrib.names import snake

RESERVED = frozenset({"local", "crib", "tools", "demo"})
"""Ids of the gateway's own sources."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NO_NAME = "is not a server's name; use letters, digits, -, _ and ., at most 63 of them"


def server_id(name: str) -> str:
    """Return the id of a server: its name where that can be one, else the name in lower snake case.

    Empty where nothing of the name can be spelled so.
    """
    return name if _ID.fullmatch(name) else snake(name)


def _server_name(name: str) -> str:
    if not name.isprintable() or not _ID.fullmatch(server_id(name)):
        raise ValueError(_NO_NAME)
    return name


def _listed(command: object) -> object:
    if isinstance(command, str):
        raise ValueError("must be a list, the program and then each argument, such as [npx, -y, some-server]")  # noqa: TRY004 - only a ValueError becomes a fault
    return command


def _program(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0].strip():
        raise ValueError("must begin with a program")
    return command


ServerName = Annotated[str, AfterValidator(_server_name)]
Command = Annotated[
    tuple[Argument, ...], BeforeValidator(_listed), Field(min_length=1), AfterValidator(_program)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What happens when a server dies."""

    enabled: Annotated[bool, "starts the server, or connects to it, again"] = True
    max_restarts: Annotated[
        Annotated[Whole, Field(ge=0, le=1_000)],
        "failed starts in a row before it counts as a crash loop; for http and sse, failed handshakes",
    ] = 5
    backoff_ms: Annotated[
        Milliseconds,
        "pause before the first restart, doubled up to 30 s; http and sse: after failed handshakes",
    ] = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class McpProcessLimits:
    """What each process of a server may use; the system enforces it."""

    memory_mb: Annotated[
        Annotated[Whole, Field(ge=16, le=1 << 24)] | None,
        BLANK,
        "MiB of address space, which is more than the memory in use; Linux alone",
    ] = None
    cpu_seconds: Annotated[
        Annotated[Whole, Field(ge=1, le=31_536_000)] | None, BLANK, "seconds of CPU time in all"
    ] = None
    open_files: Annotated[
        Annotated[Whole, Field(ge=16, le=1 << 20)] | None, BLANK, "files, pipes and sockets open at once"
    ] = None
    processes: Annotated[
        Annotated[Whole, Field(ge=1, le=1 << 22)] | None,
        BLANK,
        "processes and threads of the gateway's user, those of others included; not as root",
    ] = None
    file_size_mb: Annotated[
        Annotated[Whole, Field(ge=1, le=1 << 24)] | None, BLANK, "MiB of the largest file it writes"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What holds for every tool of a server that does not say otherwise."""

    timeout_ms: Annotated[Milliseconds, "how long one attempt may take"] = 10_000
    slow_response_threshold_ms: Annotated[Milliseconds | None, BLANK, "when to say that it takes a while"] = (
        None
    )
    slow_response_message: Annotated[Text | None, BLANK, "what to say then"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """One tool of a server that is let through, and what is said about it."""

    name: Annotated[Text, "its name on the server"]
    expose_as: Annotated[SafeName | None, BLANK, "the safe name it is given"] = None
    description: Annotated[Text | None, BLANK, "what models read, in place of its own"] = None
    speech_field: Annotated[Text | None, BLANK, "the field of the answer that is spoken"] = None
    speech_template: Annotated[
        Text | None, BLANK, "the sentence that is spoken, with {fields} of the answer"
    ] = None
    timeout_ms: Annotated[Milliseconds | None, BLANK, "how long one attempt may take"] = None
    slow_response_threshold_ms: Annotated[Milliseconds | None, BLANK, "when to say that it takes a while"] = (
        None
    )
    slow_response_message: Annotated[Text | None, BLANK, "what to say then"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One MCP server: how to reach it and how to treat it."""

    transport: Annotated[Literal["stdio", "http", "sse"], "how to talk to it"]
    enabled: Annotated[bool, "uses the server; one that is not is checked, and not started"] = True
    command: Annotated[Command, "program and arguments as a list, for stdio"] = field(default=(), repr=False)
    url: Annotated[ServerAddress | None, BLANK, "address, for http and sse"] = field(default=None, repr=False)
    headers: Annotated[Mapping[HeaderName, HeaderValue], "headers to send, for http and sse"] = field(
        default_factory=dict[str, str], repr=False
    )
    env: Annotated[Mapping[EnvName, Argument], "variables the program gets, for stdio"] = field(
        default_factory=dict[str, str], repr=False
    )
    cwd: Annotated[
        Annotated[Argument, Field(min_length=1)] | None,
        BLANK,
        "directory the program runs in, from the config file's folder; for stdio",
    ] = field(default=None, repr=False)
    start: Annotated[Literal["eager", "lazy"], "with the gateway, or on first use"] = "eager"
    idle_stop_ms: Annotated[
        Milliseconds | None,
        BLANK,
        "stops the program after so long without a call, until the next; for stdio",
    ] = None
    start_timeout_ms: Annotated[Milliseconds, "the longest from the start to the list of tools"] = 30_000
    poll_ms: Annotated[
        Annotated[Whole, Field(ge=100, le=86_400_000)] | None,
        BLANK,
        "how often to ask for the tools; without it every minute where the server tells of no changes",
    ] = None
    relay: Annotated[
        tuple[Literal["elicitation", "sampling", "roots"], ...] | None,
        BLANK,
        "what it may ask callers; without it everything, but a program may not ask for their roots",
    ] = None
    max_connections: Annotated[
        Annotated[Whole, Field(ge=1, le=1_000)] | None,
        BLANK,
        "connections for callers that can be asked, beside the shared one; 8 for stdio, else 32",
    ] = None
    connection_idle_ms: Annotated[
        Milliseconds, "how long such a connection is kept without a call; of stdio, a process"
    ] = 24_000
    limits: Annotated[
        McpProcessLimits | None, BLANK, "what its processes may use, in place of `mcp.limits`; for stdio"
    ] = None
    restart: Annotated[Restart, "what happens when it dies"] = Restart()
    defaults: Annotated[Defaults, "what holds for all of its tools"] = Defaults()
    pin: Annotated[
        Literal["strict", "notify", "off"] | None,
        BLANK,
        "a definition that changes is hidden until approved, reported, or taken as it comes; "
        "without it strict, but notify for stdio servers of the config file",
    ] = None
    tools: Annotated[tuple[McpTool, ...], "the tools that are let through; none named means all"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSection:
    """The MCP servers whose tools are offered."""

    enabled: Annotated[bool, "starts and lists MCP servers"] = True
    allow_stdio: Annotated[bool, "lets servers that are added while running start programs"] = False
    grace_ms: Annotated[
        Annotated[Whole, Field(ge=0, le=86_400_000)],
        "how long the tools of a server that is down stay listed",
    ] = 600_000
    max_copies: Annotated[
        Annotated[Whole, Field(ge=1, le=1_000)],
        "processes for callers that can be asked, of all stdio servers together",
    ] = 32
    limits: Annotated[
        McpProcessLimits, "what the processes of a server that says nothing else may use; for stdio"
    ] = McpProcessLimits()
    servers: Annotated[Mapping[ServerName, McpServer], "the servers, by a name that becomes their id"] = (
        field(default_factory=dict[str, McpServer])
    )
