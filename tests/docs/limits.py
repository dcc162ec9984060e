"""The table of all limits that apply to clients, read from the code."""

from dataclasses import fields
from typing import cast

from toolcrib.admin import app_admin, user_admin
from toolcrib.apps import definition
from toolcrib.catalog import catalog
from toolcrib.config import default_document, yaml
from toolcrib.config.mcp import McpServer
from toolcrib.descriptors import MAX_DESCRIPTORS
from toolcrib.frontends.mcp import change_notifications, client_requests, sessions, streamable_http
from toolcrib.frontends.rest import user_routes
from toolcrib.gateway import MAX_ARGUMENT_BYTES, multi_round_calls, suspended_calls
from toolcrib.http import connection_limits, framing, memory, protocol, request, request_cycle, router
from toolcrib.mcp import jsonrpc, lines
from toolcrib.quotas import REPLAY_RETENTION_SECONDS
from toolcrib.schemas import subschemas, validator
from toolcrib.schemas import validator as schemas
from toolcrib.sdk import threads
from toolcrib.sessions import user_events
from toolcrib.sources import functions
from toolcrib.sources.mcp import handshake, validation
from toolcrib.steps import replay
from toolcrib.steps.activate import Activate
from toolcrib.steps.attempt import TIMEOUT_BY_RESPONSE_TIME
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.store.shared import memory as result_cache

Row = tuple[str, str, str]

_FIXED = "fixed"


def size(number: int) -> str:
    """Format a number of bytes with its unit."""
    for unit, of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number % of == 0:
            return f"{number // of} {unit}"
    return f"{number} bytes"


def rows() -> list[Row]:
    """Return the rows of the table: what is bounded, the limit, and its setting."""
    return [*_requests(), *_mcp(), *_calls(), *_servers(), *_apps(), *_definitions()]


def _idempotency() -> list[Row]:
    most = default_document({}).idempotency
    return [
        (
            "idempotency keys and results per principal",
            f"{most.keys_per_principal:,}, {size(most.bytes_per_principal)}",
            "`idempotency.keys_per_principal`, `idempotency.bytes_per_principal`",
        ),
        (
            "idempotency keys and results in total",
            f"{most.keys:,}, {size(most.bytes)}",
            "`idempotency.keys`, `idempotency.bytes`",
        ),
    ]


def _requests() -> list[Row]:
    limits = default_document({}).limits
    unfinished = f"{limits.unfinished_bodies}, {size(limits.unfinished_bytes)}"
    return [
        ("request head", size(protocol.MAX_HEAD_BYTES), _FIXED),
        ("request headers", f"{router.MAX_REQUEST_HEADERS}, {size(router.MAX_HEADER_BYTES)}", _FIXED),
        ("request trailers and chunk extensions", size(framing.MAX_FRAMING_BYTES), _FIXED),
        ("time to receive a request", f"{protocol.ARRIVAL_SECONDS:g} s", _FIXED),
        ("request body on REST", size(limits.body_bytes), "`limits.body_bytes`"),
        ("arguments of a call on REST", size(MAX_ARGUMENT_BYTES), _FIXED),
        ("nesting of a request body", f"{subschemas.MAX_JSON_DEPTH} levels", _FIXED),
        ("values in a request body", f"{subschemas.MAX_JSON_VALUES:,}", _FIXED),
        ("caller's deadline (`X-Timeout-Ms`)", f"{request.MAX_WAIT_SECONDS:g} s", _FIXED),
        ("client connections", f"{limits.connections:,}", "`limits.connections`"),
        (
            "unfinished request bodies",
            unfinished,
            "`limits.unfinished_bodies`, `limits.unfinished_bytes`",
        ),
        ("unprocessed heads, bodies and WebSocket messages", "half of these bytes", _FIXED),
        ("unread responses", size(limits.unread_bytes), "`limits.unread_bytes`"),
        ("share of these per principal", f"{limits.share:g}", "`limits.share`"),
        (
            "time to authenticate on a connection above the limit",
            f"{connection_limits.SURPLUS_SECONDS:g} s",
            _FIXED,
        ),
        ("pipelined requests per connection", f"{protocol.MAX_PIPELINED}", _FIXED),
        ("time for a client to read 64 KiB of a response", f"{request_cycle.READ_SECONDS:g} s", _FIXED),
        (
            "memory of the process",
            f"{memory.MAX_SHARE_OF_MACHINE:.0%} of the container's or machine's",
            "`limits.memory_mb`",
        ),
        ("file descriptors, if the hard limit allows it", f"{MAX_DESCRIPTORS:,}", "`ulimit -H -n`"),
    ]


def _mcp() -> list[Row]:
    return [
        ("request body on MCP", size(streamable_http.MAX_BODY_BYTES), _FIXED),
        ("MCP sessions", f"{sessions.MAX_SESSIONS:,}", _FIXED),
        ("idle MCP session in memory", f"{sessions.IDLE_SECONDS / 60:g} min", _FIXED),
        ("unused MCP session", f"{sessions.SESSION_LIFETIME_SECONDS / 86_400:g} days", _FIXED),
        ("MCP clients subscribed to changes", f"{change_notifications.MAX_LISTENERS:,}", _FIXED),
        (
            "time for an MCP client with a session to answer a question",
            f"{client_requests.ANSWER_TIMEOUT_SECONDS:g} s",
            _FIXED,
        ),
    ]


def _calls() -> list[Row]:
    limits = default_document({}).limits
    rate = limits.per_user
    assert rate is not None
    seconds = ", ".join(f"{word} {limit:g} s" for word, limit in TIMEOUT_BY_RESPONSE_TIME.items())
    return [
        ("calls per user", f"{rate.max_calls} in {rate.window_ms / 1000:g} s", "`limits.per_user`"),
        ("concurrent calls per source", str(limits.concurrency), "`limits.concurrency`"),
        ("queued calls per source", str(limits.waiting), "`limits.waiting`"),
        (
            "time in that queue",
            f"{Bulkhead().max_wait_seconds:g} s, or until shortly before the deadline",
            _FIXED,
        ),
        ("concurrent calls in the process", f"{limits.process:,}", "`limits.process`"),
        (
            "share of these per principal; also of listeners, resource subscriptions and app sockets",
            f"{limits.share:.0%}",
            "`limits.share`",
        ),
        *_questions(),
        ("threads per source for functions that are not async", str(functions.MAX_THREADS), _FIXED),
        ("of these, while they contend for the interpreter lock", str(threads.MIN_RUNNING), _FIXED),
        ("attempt, by response time", seconds, "`timeout`, `overrides.<name>.timeout_ms`"),
        ("result", size(limits.result_bytes), "`limits.result_bytes`"),
        ("cached result", size(result_cache.MAX_CACHED_RESULT_BYTES), _FIXED),
        (
            "all cached results",
            f"{result_cache.MAX_CACHED_RESULTS:,}, {size(result_cache.MAX_CACHE_BYTES)}",
            _FIXED,
        ),
        *_keys(),
    ]


def _keys() -> list[Row]:
    return [
        ("stored result of an idempotency key", size(replay.MAX_STORED_BYTES), _FIXED),
        ("retention of that result", f"{REPLAY_RETENTION_SECONDS / 3600:g} h", _FIXED),
        *_idempotency(),
        ("time a claim of another machine counts as running", f"{replay.MAX_CLAIM_SECONDS:g} s", _FIXED),
    ]


def _questions() -> list[Row]:
    limits, days = default_document({}).limits, multi_round_calls.STATE_SECONDS / 86_400
    return [
        ("suspended calls", f"{limits.parked:,}", "`limits.parked`"),
        ("suspended calls per user", str(limits.parked_per_user), "`limits.parked_per_user`"),
        ("time limit of a suspended call", f"{limits.parked_ms / 1000:g} s", "`limits.parked_ms`"),
        ("pending questions per call", str(suspended_calls.MAX_PENDING_QUESTIONS), _FIXED),
        (
            "state of a source in a question",
            f"{size(multi_round_calls.MAX_STATE_BYTES)}, {days:g} day",
            _FIXED,
        ),
    ]


def _servers() -> list[Row]:
    pages, bytes_ = handshake.MAX_LIST_PAGES, size(handshake.MAX_LIST_BYTES)
    listed = f"{handshake.MAX_LIST_ENTRIES:,} on {pages} pages, {bytes_}"
    server = McpServer(transport="stdio")
    timeout, start = server.defaults.timeout_ms / 1000, server.start_timeout_ms / 1000
    own = "mcp.servers.<name>"
    return [
        ("message of an MCP server", size(jsonrpc.MAX_MESSAGE_BYTES), _FIXED),
        ("output of an MCP server without a line end", size(lines.MAX_SKIPPED_BYTES), _FIXED),
        ("tools of an MCP server", listed, _FIXED),
        ("definition of a tool of an MCP server", size(validation.MAX_DEFINITION_BYTES), _FIXED),
        ("description of a tool of an MCP server", size(validation.MAX_TEXT_BYTES), _FIXED),
        ("attempt with an MCP server", f"{timeout:g} s", f"`{own}.defaults.timeout_ms`"),
        ("start of an MCP server", f"{start:g} s", f"`{own}.start_timeout_ms`"),
        ("wait of a call for a start", f"{_activation():g} s", _FIXED),
        ("consecutive failures that open a circuit breaker", str(Breaker().failures), _FIXED),
    ]


def _apps() -> list[Row]:
    apps = default_document({}).apps
    return [
        ("tools of an app", str(definition.MAX_TOOLS_PER_APP), _FIXED),
        ("definition of a tool of an app", size(definition.MAX_APP_TOOL_BYTES), _FIXED),
        ("start of an app", f"{apps.activation_ms / 1000:g} s", "`apps.activation_ms`"),
        ("attempt with an app", f"{apps.timeout_ms / 1000:g} s", "`apps.timeout_ms`"),
        ("a user's settings of an app", size(user_admin.MAX_SETTINGS_BYTES), _FIXED),
        ("value that an app stores for a user", f"{app_admin.MAX_DATA_VALUE_CHARS:,} characters", _FIXED),
        ("all values of an app for one user", size(app_admin.MAX_DATA_BYTES), _FIXED),
        ("event stream clients per user", str(user_events.MAX_USER_LISTENERS), _FIXED),
        ("queued events per such client", f"{user_events.MAX_QUEUED_EVENTS} events", _FIXED),
        ("user utterance", f"{user_routes.MAX_UTTERANCE_CHARACTERS:,} characters", _FIXED),
    ]


def _activation() -> float:
    return cast("float", next(each.default for each in fields(Activate) if each.name == "max_wait_seconds"))


def _definitions() -> list[Row]:
    return [
        ("tools in the catalog", f"{catalog.MAX_CATALOG_TOOLS:,}", _FIXED),
        ("schema of a tool", f"{size(schemas.MAX_SCHEMA_BYTES)}, {schemas.MAX_SCHEMA_DEPTH} levels", _FIXED),
        ("paths through a schema", f"{validator.MAX_SCHEMA_PATHS:,}", _FIXED),
        ("patterns in a schema", str(validator.MAX_PATTERNS), _FIXED),
        (
            "config file",
            ", ".join(
                (
                    size(yaml.MAX_CONFIG_BYTES),
                    f"{yaml.MAX_CONFIG_DEPTH} levels",
                    f"{yaml.MAX_CONFIG_VALUES:,} values",
                )
            ),
            _FIXED,
        ),
    ]
