"""What this version reads and checks but does not serve yet, so that a file written for it stays valid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from toolcrib.config.values import BLANK, Amount, Milliseconds, SafeName, SourceName, Text, WebAddress, Whole

LATER: tuple[tuple[str, ...], ...] = (
    ("mcp",),
    ("openapi",),
    ("energy",),
    ("allow_private",),
    ("legacy",),
    ("pins",),
    ("limits", "process"),
    ("contexts", "*", "max_tools"),
    ("contexts", "*", "pinned"),
    ("contexts", "*", "search"),
    ("contexts", "*", "min_energy"),
    ("contexts", "*", "max_energy_cost"),
    ("contexts", "*", "urgent"),
    ("overrides", "*", "energy_cost"),
    ("overrides", "*", "slow_response_threshold_ms"),
    ("overrides", "*", "slow_response_message"),
)
"""What is not served yet; `*` stands for any key."""

FORMATS_LATER = frozenset(
    {
        "openai_chat",
        "openai_responses",
        "openai_realtime",
        "anthropic",
        "gemini",
        "gemini_live",
        "deepgram",
        "elevenlabs",
        "langchain",
    }
)
"""Formats a context may name already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What happens when a server dies."""

    enabled: Annotated[bool, "starts the server again"] = True
    max_restarts: Annotated[
        Annotated[Whole, Field(ge=0)], "restarts in a row before it counts as a crash loop"
    ] = 5
    backoff_ms: Annotated[Milliseconds, "pause before the first restart; it doubles"] = 1_000


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
    speech_template: Annotated[Text | None, BLANK, "the sentence that is spoken"] = None
    timeout_ms: Annotated[Milliseconds | None, BLANK, "how long one attempt may take"] = None
    slow_response_threshold_ms: Annotated[Milliseconds | None, BLANK, "when to say that it takes a while"] = (
        None
    )
    slow_response_message: Annotated[Text | None, BLANK, "what to say then"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One MCP server: how to reach it and how to treat it."""

    transport: Annotated[Literal["stdio", "http", "sse"], "how to talk to it"]
    enabled: Annotated[bool, "uses the server"] = True
    command: Annotated[tuple[Text, ...], Field(min_length=1), "program and arguments, for stdio"] = field(
        default=(), repr=False
    )
    url: Annotated[WebAddress | None, BLANK, "address, for http and sse"] = field(default=None, repr=False)
    headers: Annotated[Mapping[str, str], "headers to send, for http and sse"] = field(
        default_factory=dict[str, str], repr=False
    )
    env: Annotated[Mapping[str, str], "variables the program gets"] = field(
        default_factory=dict[str, str], repr=False
    )
    cwd: Annotated[Text | None, BLANK, "directory the program runs in"] = None
    start: Annotated[Literal["eager", "lazy"], "with the gateway, or on first use"] = "eager"
    restart: Annotated[Restart, "what happens when it dies"] = Restart()
    defaults: Annotated[Defaults, "what holds for all of its tools"] = Defaults()
    pin: Annotated[Literal["strict", "notify", "off"], "what happens when a definition changes"] = "notify"
    tools: Annotated[tuple[McpTool, ...], "the tools that are let through; none named means all"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcp:
    """The MCP servers whose tools are offered."""

    enabled: Annotated[bool, "starts and lists MCP servers"] = True
    servers: Annotated[Mapping[SourceName, McpServer], "the servers"] = field(
        default_factory=dict[str, McpServer]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApi:
    """One HTTP API that describes itself."""

    document: Annotated[Text, "file or address of the OpenAPI document"] = field(repr=False)
    base_url: Annotated[WebAddress | None, BLANK, "address of the API, in place of the document's own"] = (
        field(default=None, repr=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What callers can spend."""

    start: Annotated[Amount, "energy a caller begins with"] = 100.0
    recover_per_s: Annotated[Amount, "energy that comes back each second"] = 1.0
    default_cost: Annotated[Amount, "what a call costs where nobody says"] = 1.0
