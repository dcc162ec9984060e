"""Sections of the config as dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from toolcrib.config.mcp import McpSection
from toolcrib.config.value_types import (
    BLANK_AS_UNSET,
    NOT_NULL,
    Amount,
    ContextName,
    Count,
    Entry,
    HeaderHost,
    HeaderName,
    HeaderValue,
    Host,
    LongMilliseconds,
    MetricPrefix,
    Milliseconds,
    Mode,
    Module,
    Network,
    Pattern,
    Port,
    Rate,
    SafeName,
    Share,
    SharedAddress,
    SourceName,
    StoreAddress,
    Text,
    ToolName,
    WebAddress,
)
from toolcrib.model import Category, Deprecation, HintSetting, RateLimit, ResponseTime

# --- Settings of a later version: validated, so that such a file is accepted, but without effect ---

UNIMPLEMENTED: tuple[tuple[str, ...], ...] = (("openapi",),)
"""Path patterns of unimplemented settings; `*` matches any key, and lists are traversed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApi:
    """An HTTP API with an OpenAPI document."""

    document: Annotated[Text, "path or URL of the OpenAPI document"] = field(repr=False)
    base_url: Annotated[
        WebAddress | None, BLANK_AS_UNSET, "base URL of the API, instead of the one in the document"
    ] = field(default=None, repr=False)


# --- The sections of a config file: field types are the validation, annotated texts the docs ---

PER_USER = RateLimit(600, 60_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSection:
    """The bind address of the gateway, and the proxies that it trusts."""

    host: Annotated[Host, "address to listen on"] = "127.0.0.1"
    port: Annotated[
        Port | None,
        BLANK_AS_UNSET,
        "port to listen on; 0 for any free port; unset: the first free port from 6740 to 6749",
    ] = None
    public_url: Annotated[
        WebAddress | None,
        BLANK_AS_UNSET,
        "URL by which others reach the gateway, if it differs from host and port",
    ] = None
    allowed_hosts: Annotated[tuple[HeaderHost, ...], "additional host names accepted in the Host header"] = ()
    trusted_proxies: Annotated[
        tuple[Network, ...], "addresses of proxies whose forwarding headers are trusted"
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousSection:
    """Access for callers without a credential."""

    context: Annotated[ContextName, "the context of anonymous callers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSection:
    """How callers authenticate."""

    mode: Annotated[
        Mode, "keys for API keys; trust_header to trust the header X-User-Id from this machine"
    ] = "keys"
    admin_key: Annotated[
        str | None,
        BLANK_AS_UNSET,
        "the operator's key; $TOOLCRIB_ADMIN_KEY takes precedence; unset: a key is generated and saved",
    ] = field(default=None, repr=False)
    admin_key_old: Annotated[
        str | None,
        BLANK_AS_UNSET,
        "the previous admin key, needed for one start after a change: stored secrets are wrapped again with "
        "the new key; $TOOLCRIB_ADMIN_KEY_OLD takes precedence",
    ] = field(default=None, repr=False)
    default: Annotated[
        Literal["allow", "deny"],
        "deny: tools that require no permission need tools:SOURCE, keys without contexts may use none",
    ] = "allow"
    purge_keys_after_days: Annotated[
        Count, "days after which a revoked or expired key is deleted, except its name"
    ] = 90
    anonymous: Annotated[
        AnonymousSection | None, "accepts callers without a credential; only on a loopback address"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsSection:
    """How secrets in the store are encrypted."""

    key_file: Annotated[
        Text | None,
        BLANK_AS_UNSET,
        "file with the secret that wraps the key of stored secrets; unset: the admin key wraps it",
    ] = None
    key_file_old: Annotated[
        Text | None,
        BLANK_AS_UNSET,
        "the previous key file, needed for one start after key_file was changed or removed",
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySection:
    """The energy budget of callers."""

    start: Annotated[Amount, "initial energy of a caller, also the maximum"] = 100.0
    recover_per_s: Annotated[Amount, "energy regained per second"] = 1.0
    default_cost: Annotated[Amount, "cost of a call whose tool declares none"] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """The tools that a group of callers sees. `tools` absent means all, empty means none."""

    tools: Annotated[
        tuple[Entry, ...] | None,
        NOT_NULL,
        "tool names, globs with *, tag:x and category:x; omitted: all tools; []: none",
    ] = None
    style: Annotated[
        Literal["safe", "flat", "qualified"] | None,
        BLANK_AS_UNSET,
        "style of tool names; qualified works with REST only",
    ] = None
    provider: Annotated[
        Text | None, BLANK_AS_UNSET, "the provider format whose limits apply, such as openai_realtime"
    ] = None
    max_tools: Annotated[Count | None, BLANK_AS_UNSET, "maximum number of tools in a list"] = None
    pinned: Annotated[tuple[Entry, ...], "tools that stay in the list when it is cut to max_tools"] = ()
    search: Annotated[
        bool, "search mode: MCP clients see only the pinned tools and those they search for"
    ] = False
    min_energy: Annotated[
        Amount | None, BLANK_AS_UNSET, "minimum energy a caller needs to use this context"
    ] = None
    max_energy_cost: Annotated[
        Amount | None, BLANK_AS_UNSET, "maximum energy cost of the tools in this context"
    ] = None
    urgent: Annotated[bool, "shows all tools regardless of the caller's energy"] = False
    slow_response: Annotated[
        bool | None,
        BLANK_AS_UNSET,
        "whether to announce slow calls; unset: yes, unless the provider announces them itself",
    ] = None
    hints: Annotated[
        HintSetting,
        "hints that models see: off, errors (for failed calls), brief (what they can act on), full",
    ] = "errors"
    description: Annotated[str | None, BLANK_AS_UNSET, "purpose of the context, in one sentence"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideSection:
    """The operator's changes to tools of any source. None keeps the tool's own value."""

    permissions: Annotated[
        frozenset[Text] | None, "permissions a caller needs, instead of the tool's own"
    ] = None
    category: Annotated[Category | None, BLANK_AS_UNSET, "kind of effect a call has"] = None
    response_time: Annotated[ResponseTime | None, BLANK_AS_UNSET, "typical duration of a call"] = None
    idempotent: Annotated[
        bool | None, BLANK_AS_UNSET, "whether calling twice has the same effect as calling once"
    ] = None
    cache_ttl: Annotated[Amount | None, BLANK_AS_UNSET, "seconds a result may be cached; 0 for never"] = None
    shared_cache: Annotated[
        bool | None, BLANK_AS_UNSET, "whether a cached result may be returned to other callers"
    ] = None
    tags: Annotated[tuple[Text, ...] | None, "tags to select the tool by"] = None
    energy_cost: Annotated[Amount | None, BLANK_AS_UNSET, "energy cost of a call"] = None
    rate_limit: Annotated[Rate | None, BLANK_AS_UNSET, "rate limit per user"] = None
    timeout_ms: Annotated[Milliseconds | None, BLANK_AS_UNSET, "time limit of one attempt"] = None
    speech_field: Annotated[Text | None, BLANK_AS_UNSET, "field of the result that is read aloud"] = None
    speech_template: Annotated[
        Text | None, BLANK_AS_UNSET, "sentence to read aloud, with {fields} of the result"
    ] = None
    slow_response_threshold_ms: Annotated[
        Milliseconds | None, BLANK_AS_UNSET, "time after which a running call is announced as slow"
    ] = None
    slow_response_message: Annotated[Text | None, BLANK_AS_UNSET, "text of that announcement"] = None
    expose_as: Annotated[SafeName | None, BLANK_AS_UNSET, "safe name for the tool"] = None
    description: Annotated[
        Text | None, BLANK_AS_UNSET, "description for models, instead of the tool's own"
    ] = None
    hidden: Annotated[bool | None, BLANK_AS_UNSET, "hides the tool: it is neither listed nor callable"] = None
    aliases: Annotated[tuple[Pattern, ...] | None, "additional names of the tool"] = None
    deprecated: Annotated[
        Deprecation | None, "marks the tool as deprecated: {since, replacement, removal_date, announced}"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSection:
    """Limits on callers, requests and memory."""

    per_user: Annotated[Rate | None, BLANK_AS_UNSET, "rate limit per user; null for no limit"] = PER_USER
    per_tool: Annotated[Mapping[Pattern, Rate], "rate limits per user and tool, by tool name or glob"] = (
        field(default_factory=dict[str, RateLimit])
    )
    result_bytes: Annotated[Count, "maximum size of a result, in bytes"] = 8 << 20
    body_bytes: Annotated[Count, "maximum size of a request body, in bytes"] = 4 << 20
    concurrency: Annotated[Count, "maximum concurrent calls per source"] = 32
    waiting: Annotated[Annotated[int, Field(ge=0)], "maximum queued calls per source"] = 256
    share: Annotated[Share, "maximum fraction of any shared limit that one principal may use"] = 0.75
    connections: Annotated[Count, "maximum open client connections"] = 2000
    unfinished_bodies: Annotated[Count, "maximum requests whose body is still being received"] = 256
    unfinished_bytes: Annotated[Count, "maximum bytes of request bodies still being received"] = 64 << 20
    unread_bytes: Annotated[Count, "maximum buffered bytes of responses that clients have not read yet"] = (
        128 << 20
    )
    memory_mb: Annotated[
        Annotated[int, Field(ge=0)] | None,
        BLANK_AS_UNSET,
        "memory in MiB above which new work is refused; unset: 75 % of the container's limit; 0 for no limit",
    ] = None
    process: Annotated[Count, "maximum concurrent calls in the process"] = 1024
    parked: Annotated[Count, "maximum suspended calls, which wait for the answer to a question"] = 1000
    parked_per_user: Annotated[Count, "maximum suspended calls per user"] = 16
    parked_ms: Annotated[Milliseconds, "how long a suspended call waits for the answer"] = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """Limits on the results stored for idempotency keys."""

    keys_per_principal: Annotated[
        Count, "maximum keys per principal; calls with further keys are refused"
    ] = 10_000
    bytes_per_principal: Annotated[
        Count, "maximum bytes of one principal's stored results; beyond that, its oldest are removed"
    ] = 16 << 20
    keys: Annotated[Count, "maximum keys of all principals; calls with further keys are refused"] = 100_000
    bytes: Annotated[
        Count, "maximum bytes of all stored results; beyond that, the oldest of the largest user are removed"
    ] = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """The metrics for Prometheus."""

    prefix: Annotated[MetricPrefix, "prefix of all metric names"] = "toolcrib"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSection:
    """The log."""

    level: Annotated[Literal["debug", "info", "warning", "error"], "minimum level to log"] = "info"
    file: Annotated[Text | None, BLANK_AS_UNSET, "log file; unset: standard error"] = None
    arguments: Annotated[bool, "logs the arguments of each call at its start, with secrets removed"] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The export of traces. The OTEL_ environment variables apply to settings that are omitted."""

    endpoint: Annotated[
        WebAddress | None,
        BLANK_AS_UNSET,
        "URL of an OpenTelemetry collector, such as http://127.0.0.1:4318; requires the extra otel",
    ] = field(default=None, repr=False)
    headers: Annotated[Mapping[HeaderName, HeaderValue], "headers to send to the collector"] = field(
        default_factory=dict[str, str], repr=False
    )
    sample: Annotated[
        Share | None, BLANK_AS_UNSET, "fraction of the traces started here that is exported; 1 for all"
    ] = None
    service_name: Annotated[Text | None, BLANK_AS_UNSET, "service name in traces; unset: toolcrib"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The search engine of the web search tool."""

    url: Annotated[WebAddress | None, BLANK_AS_UNSET, "URL of a SearXNG-compatible search engine"] = field(
        default=None, repr=False
    )
    timeout_ms: Annotated[Milliseconds, "time limit of a search"] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppsSection:
    """Timeouts and behaviour of mini-apps."""

    activation_ms: Annotated[Milliseconds, "time limit for an app to start and connect"] = 10_000
    timeout_ms: Annotated[Milliseconds, "time limit for an app to answer a call"] = 30_000
    grace_ms: Annotated[Milliseconds, "time limit for an app to reconnect after its connection was lost"] = (
        5_000
    )
    heartbeat_ms: Annotated[Milliseconds, "interval of heartbeats to an app"] = 10_000
    idle_stop_ms: Annotated[
        Milliseconds | None, BLANK_AS_UNSET, "time after which an idle app is stopped; null for never"
    ] = 600_000
    session_idle_ms: Annotated[
        LongMilliseconds | None, BLANK_AS_UNSET, "time after which an idle user session ends; null for never"
    ] = 86_400_000
    phone_microphone: Annotated[bool, "treats the phone's microphone as available to every device"] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadSection:
    """Reloading of the config file."""

    watch: Annotated[bool, "reloads the config file whenever it changes"] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The whole document."""

    # Nested classes without a config of their own follow this one.
    __pydantic_config__ = ConfigDict(extra="forbid")

    server: Annotated[ServerSection, "bind address and proxies"] = ServerSection()
    store: Annotated[
        StoreAddress,
        "sqlite:///PATH (from the working directory) or postgresql://…; unset: SQLite in $TOOLCRIB_HOME",
    ] = field(default="sqlite:///.toolcrib/toolcrib.db", repr=False)
    shared: Annotated[SharedAddress, "backend of state shared between replicas; only memory so far"] = (
        "memory"
    )
    auth: Annotated[AuthSection, "authentication of callers"] = AuthSection()
    secrets: Annotated[SecretsSection, "how secrets in the store are encrypted"] = SecretsSection()
    functions: Annotated[tuple[Module, ...], "Python modules with @tool functions"] = ()
    contexts: Annotated[
        Mapping[ContextName, ContextSection], "named sets of tools, for groups of callers"
    ] = field(default_factory=dict[str, ContextSection])
    overrides: Annotated[
        Mapping[Pattern, OverrideSection],
        "changes to tools, by tool name or glob; later entries take precedence over earlier ones",
    ] = field(default_factory=dict[str, OverrideSection])
    limits: Annotated[LimitsSection, "limits on callers, requests and memory"] = LimitsSection()
    idempotency: Annotated[Idempotency, "limits on the results stored for idempotency keys"] = Idempotency()
    metrics: Annotated[MetricsSection, "metrics for Prometheus"] = MetricsSection()
    log: Annotated[LogSection, "the log"] = LogSection()
    traces: Annotated[Traces, "export of traces"] = field(default_factory=Traces)
    search: Annotated[Search, "search engine of the web search tool"] = Search()
    mcp: Annotated[McpSection, "MCP servers"] = field(default_factory=McpSection)
    apps: Annotated[AppsSection, "mini-apps"] = AppsSection()
    reload: Annotated[ReloadSection, "reloading of the config file"] = ReloadSection()
    openapi: Annotated[Mapping[SourceName, OpenApi], "OpenAPI documents whose operations become tools"] = (
        field(default_factory=dict[str, OpenApi])
    )
    energy: Annotated[EnergySection, "energy budget of callers"] = field(default_factory=EnergySection)
    allow_private: Annotated[
        tuple[Network, ...] | None,
        "private networks that URLs added at run time may point to; the admin key may also use loopback",
    ] = None
    legacy: Annotated[bool, "serves the legacy routes"] = True
    pins: Annotated[Mapping[ToolName, Text], "approved tool definitions: tool name and fingerprint"] = field(
        default_factory=dict[str, str]
    )
