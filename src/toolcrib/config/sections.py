"""Sections of the config as dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from toolcrib.config.mcp import McpSection
from toolcrib.config.value_types import (
    BLANK,
    GIVEN,
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
from toolcrib.model import Category, Deprecation, RateLimit, ResponseTime

# --- Settings that are validated but not implemented yet, so that files for a later version are accepted ---

LATER: tuple[tuple[str, ...], ...] = (("openapi",),)
"""Path patterns of unimplemented settings; `*` matches any key, and lists are traversed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApi:
    """An HTTP API with an OpenAPI document."""

    document: Annotated[Text, "file or address of the OpenAPI document"] = field(repr=False)
    base_url: Annotated[WebAddress | None, BLANK, "address of the API, in place of the document's own"] = (
        field(default=None, repr=False)
    )


# --- The sections of a config file: fields are the settings, their types the check, their notes the docs ---

PER_USER = RateLimit(600, 60_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSection:
    """Where the gateway listens, and whom it believes on the way."""

    host: Annotated[Host, "address to listen on"] = "127.0.0.1"
    port: Annotated[
        Port | None, BLANK, "port to listen on, 0 for any; without one the first free of 6740 to 6749"
    ] = None
    public_url: Annotated[
        WebAddress | None, BLANK, "how others reach the gateway, where that is not host and port"
    ] = None
    allowed_hosts: Annotated[
        tuple[HeaderHost, ...], "further names the gateway answers to in the Host header"
    ] = ()
    trusted_proxies: Annotated[tuple[Network, ...], "addresses whose forwarding headers are believed"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousSection:
    """What callers without a credential get."""

    context: Annotated[ContextName, "the context they are in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSection:
    """How callers show who they are."""

    mode: Annotated[Mode, "keys, or trust_header to believe X-User-Id from this machine"] = "keys"
    admin_key: Annotated[
        str | None,
        BLANK,
        "the operator's key; $TOOLCRIB_ADMIN_KEY goes before it, without either one is made and kept",
    ] = field(default=None, repr=False)
    admin_key_old: Annotated[
        str | None,
        BLANK,
        "the operator's key until now, for one start: what it wrapped is wrapped again with the new one; "
        "$TOOLCRIB_ADMIN_KEY_OLD goes before it",
    ] = field(default=None, repr=False)
    default: Annotated[
        Literal["allow", "deny"],
        "deny: tools that ask for no permission need tools:SOURCE, keys without contexts enter none",
    ] = "allow"
    purge_keys_after_days: Annotated[
        Count, "days after which all but the name of a revoked or expired key is deleted"
    ] = 90
    anonymous: Annotated[
        AnonymousSection | None, "lets callers without a credential in, on a loopback address only"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsSection:
    """How secrets in the store are encrypted."""

    key_file: Annotated[
        Text | None,
        BLANK,
        "file with the secret that wraps the key of stored secrets; without one the admin key does",
    ] = None
    key_file_old: Annotated[
        Text | None, BLANK, "that file until now, for one start, where there is another one or none"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySection:
    """What callers can spend."""

    start: Annotated[Amount, "energy a caller begins with"] = 100.0
    recover_per_s: Annotated[Amount, "energy that comes back each second"] = 1.0
    default_cost: Annotated[Amount, "what a call costs where nobody says"] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """Which tools some callers see, and how. `tools` absent means all, empty means none."""

    tools: Annotated[
        tuple[Entry, ...] | None,
        GIVEN,
        "names, globs with *, tag:x and category:x; left out for all, [] for none",
    ] = None
    style: Annotated[
        Literal["safe", "flat", "qualified"] | None, BLANK, "how tools are named; qualified is for REST alone"
    ] = None
    provider: Annotated[Text | None, BLANK, "the format whose limits apply, such as openai_realtime"] = None
    max_tools: Annotated[Count | None, BLANK, "the most tools a list holds"] = None
    pinned: Annotated[tuple[Entry, ...], "tools that stay on the list whatever is cut"] = ()
    search: Annotated[bool, "MCP clients are shown what is pinned and what they search for"] = False
    min_energy: Annotated[Amount | None, BLANK, "energy a caller needs to be in this context"] = None
    max_energy_cost: Annotated[Amount | None, BLANK, "the dearest tool this context shows"] = None
    urgent: Annotated[bool, "shows everything whatever the energy"] = False
    slow_response: Annotated[
        bool | None,
        BLANK,
        "says that a call takes a while, or does not; without it, not where the provider speaks by itself",
    ] = None
    description: Annotated[str | None, BLANK, "what the context is for, in a sentence"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideSection:
    """What the operator says about tools of any source. None leaves the tool's own."""

    permissions: Annotated[
        frozenset[Text] | None, "permissions a caller needs, in place of the tool's own"
    ] = None
    category: Annotated[Category | None, BLANK, "what a call does"] = None
    response_time: Annotated[ResponseTime | None, BLANK, "how long an answer usually takes"] = None
    idempotent: Annotated[bool | None, BLANK, "whether calling twice does what calling once does"] = None
    cache_ttl: Annotated[Amount | None, BLANK, "seconds an answer may be kept; 0 for never"] = None
    shared_cache: Annotated[bool | None, BLANK, "whether one caller's kept answer may serve another"] = None
    tags: Annotated[tuple[Text, ...] | None, "words to select the tool by"] = None
    energy_cost: Annotated[Amount | None, BLANK, "what a call costs"] = None
    rate_limit: Annotated[Rate | None, BLANK, "calls a user may make"] = None
    timeout_ms: Annotated[Milliseconds | None, BLANK, "how long one attempt may take"] = None
    speech_field: Annotated[Text | None, BLANK, "the field of the answer that is spoken"] = None
    speech_template: Annotated[
        Text | None, BLANK, "the sentence that is spoken, with {fields} of the answer"
    ] = None
    slow_response_threshold_ms: Annotated[Milliseconds | None, BLANK, "when to say that it takes a while"] = (
        None
    )
    slow_response_message: Annotated[Text | None, BLANK, "what to say then"] = None
    expose_as: Annotated[SafeName | None, BLANK, "the safe name the tool is given"] = None
    description: Annotated[Text | None, BLANK, "what models read, in place of the tool's own"] = None
    hidden: Annotated[bool | None, BLANK, "takes the tool off every list and out of reach"] = None
    aliases: Annotated[tuple[Pattern, ...] | None, "further names it answers to"] = None
    deprecated: Annotated[
        Deprecation | None, "{since, replacement, removal_date, announced}: the tool is on its way out"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSection:
    """How much is too much."""

    per_user: Annotated[Rate | None, BLANK, "calls one user may make; null for no limit"] = PER_USER
    per_tool: Annotated[Mapping[Pattern, Rate], "calls one user may make to a tool, by name or glob"] = field(
        default_factory=dict[str, RateLimit]
    )
    result_bytes: Annotated[Count, "the largest result that is passed on"] = 8 << 20
    body_bytes: Annotated[Count, "the largest request that is read"] = 4 << 20
    concurrency: Annotated[Count, "calls of one source that run at once"] = 32
    waiting: Annotated[Annotated[int, Field(ge=0)], "calls of one source that may wait for their turn"] = 256
    share: Annotated[Share, "the largest part of any shared limit that one principal may hold"] = 0.75
    connections: Annotated[Count, "open connections of clients"] = 2000
    unfinished_bodies: Annotated[Count, "requests whose body is still arriving"] = 256
    unfinished_bytes: Annotated[Count, "bytes of bodies that are still arriving"] = 64 << 20
    unread_bytes: Annotated[Count, "bytes of answers that clients have not read yet"] = 128 << 20
    memory_mb: Annotated[
        Annotated[int, Field(ge=0)] | None,
        BLANK,
        "memory in MiB near which new work is refused; without it 75 % of the container's, 0 for no limit",
    ] = None
    process: Annotated[Count, "calls that are under way in the whole process"] = 1024
    parked: Annotated[Count, "calls that wait for the answer to a question"] = 1000
    parked_per_user: Annotated[Count, "calls of one user that wait for the answer to a question"] = 16
    parked_ms: Annotated[Milliseconds, "how long a call waits for the answer to a question"] = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """How much is stored for calls with an idempotency key."""

    keys_per_principal: Annotated[Count, "keys of one principal; a call under one more is refused"] = 10_000
    bytes_per_principal: Annotated[
        Count, "bytes of one principal's answers; its oldest are not kept any longer beyond that"
    ] = 16 << 20
    keys: Annotated[Count, "keys of all principals; a call under one more is refused"] = 100_000
    bytes: Annotated[
        Count, "bytes of all answers; the oldest of whoever has most are not kept any longer beyond that"
    ] = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """What Prometheus reads."""

    prefix: Annotated[MetricPrefix, "first word of every metric's name"] = "toolcrib"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSection:
    """What is written down."""

    level: Annotated[Literal["debug", "info", "warning", "error"], "the least that is written"] = "info"
    file: Annotated[Text | None, BLANK, "file to write to; without one to standard error"] = None
    arguments: Annotated[bool, "writes what each call was asked, without secrets, as it begins"] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Where spans of calls go. What is left out, the environment's OTEL_ variables say."""

    endpoint: Annotated[
        WebAddress | None,
        BLANK,
        "an OpenTelemetry collector, such as http://127.0.0.1:4318; needs the extra otel",
    ] = field(default=None, repr=False)
    headers: Annotated[Mapping[HeaderName, HeaderValue], "headers the collector asks for"] = field(
        default_factory=dict[str, str], repr=False
    )
    sample: Annotated[
        Share | None, BLANK, "how many of the traces that begin here are exported; 1 for all"
    ] = None
    service_name: Annotated[Text | None, BLANK, "what the gateway is called in traces; else toolcrib"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where the web search tool looks."""

    url: Annotated[WebAddress | None, BLANK, "address of a SearXNG-compatible search"] = field(
        default=None, repr=False
    )
    timeout_ms: Annotated[Milliseconds, "how long a search may take"] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppsSection:
    """How mini-apps are started, asked and stopped."""

    activation_ms: Annotated[Milliseconds, "how long an app may take to start and connect"] = 10_000
    timeout_ms: Annotated[Milliseconds, "how long an app may take to answer a call"] = 30_000
    grace_ms: Annotated[Milliseconds, "how long an app whose connection broke may take to come back"] = 5_000
    heartbeat_ms: Annotated[Milliseconds, "how often an app is asked whether it is there"] = 10_000
    idle_stop_ms: Annotated[
        Milliseconds | None, BLANK, "how long an app nobody uses stays running; null for ever"
    ] = 600_000
    session_idle_ms: Annotated[
        LongMilliseconds | None, BLANK, "how long a user's session lasts that nobody uses; null for ever"
    ] = 86_400_000
    phone_microphone: Annotated[bool, "counts the phone's microphone as one of every device"] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadSection:
    """When the config is read again."""

    watch: Annotated[bool, "reads the config file again whenever it changes"] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The whole document."""

    # Nested classes without a config of their own follow this one.
    __pydantic_config__ = ConfigDict(extra="forbid")

    server: Annotated[ServerSection, "where the gateway listens"] = ServerSection()
    store: Annotated[
        StoreAddress,
        "sqlite:///PATH (from the working directory) or postgresql://…; without it in $TOOLCRIB_HOME",
    ] = field(default="sqlite:///.toolcrib/toolcrib.db", repr=False)
    shared: Annotated[SharedAddress, "what replicas share: memory"] = "memory"
    auth: Annotated[AuthSection, "who may call"] = AuthSection()
    secrets: Annotated[SecretsSection, "how secrets in the store are encrypted"] = SecretsSection()
    functions: Annotated[tuple[Module, ...], "modules with @tool functions"] = ()
    contexts: Annotated[Mapping[ContextName, ContextSection], "who sees which tools"] = field(
        default_factory=dict[str, ContextSection]
    )
    overrides: Annotated[
        Mapping[Pattern, OverrideSection],
        "what the operator says about tools, by name or glob; a later one goes over an earlier one",
    ] = field(default_factory=dict[str, OverrideSection])
    limits: Annotated[LimitsSection, "how much is too much"] = LimitsSection()
    idempotency: Annotated[Idempotency, "what is stored for idempotency keys"] = Idempotency()
    metrics: Annotated[MetricsSection, "what Prometheus reads"] = MetricsSection()
    log: Annotated[LogSection, "what is written down"] = LogSection()
    traces: Annotated[Traces, "where spans of calls go"] = field(default_factory=Traces)
    search: Annotated[Search, "where the web search tool looks"] = Search()
    mcp: Annotated[McpSection, "MCP servers"] = field(default_factory=McpSection)
    apps: Annotated[AppsSection, "mini-apps"] = AppsSection()
    reload: Annotated[ReloadSection, "when the config is read again"] = ReloadSection()
    openapi: Annotated[Mapping[SourceName, OpenApi], "OpenAPI documents whose operations become tools"] = (
        field(default_factory=dict[str, OpenApi])
    )
    energy: Annotated[EnergySection, "the energy of callers"] = field(default_factory=EnergySection)
    allow_private: Annotated[
        tuple[Network, ...] | None,
        "private networks that addresses given while running may be in; loopback is the admin key's anyway",
    ] = None
    legacy: Annotated[bool, "serves the old routes"] = True
    pins: Annotated[Mapping[ToolName, Text], "approved definitions: a tool's name and its seal"] = field(
        default_factory=dict[str, str]
    )
