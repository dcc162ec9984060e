"""Every limit a client can run into, read from the code."""

from dataclasses import fields
from typing import cast

from toolcrib.admin import app_admin, user_admin
from toolcrib.apps import definition
from toolcrib.catalog import catalog
from toolcrib.config import default_document, yaml
from toolcrib.config.mcp import McpServer
from toolcrib.descriptors import MAX_DESCRIPTORS
from toolcrib.frontends.mcp import change_notifications, client_requests, sessions, streamable_http
from toolcrib.frontends.rest import user_routes as said
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
    """Format a number of bytes for people."""
    for unit, of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number % of == 0:
            return f"{number // of} {unit}"
    return f"{number} bytes"


def rows() -> list[Row]:
    """Return what is bounded, by how much, and where that is set."""
    return [*_requests(), *_mcp(), *_calls(), *_servers(), *_apps(), *_definitions()]


def _idempotency() -> list[Row]:
    most = default_document({}).idempotency
    return [
        (
            "idempotency keys and answers of one principal",
            f"{most.keys_per_principal:,}, {size(most.bytes_per_principal)}",
            "`idempotency.keys_per_principal`, `idempotency.bytes_per_principal`",
        ),
        (
            "idempotency keys and answers in all",
            f"{most.keys:,}, {size(most.bytes)}",
            "`idempotency.keys`, `idempotency.bytes`",
        ),
    ]


def _requests() -> list[Row]:
    limits = default_document({}).limits
    unfinished = f"{limits.unfinished_bodies}, {size(limits.unfinished_bytes)}"
    return [
        ("head of a request, before it is parsed", size(protocol.MAX_HEAD_BYTES), _FIXED),
        ("headers together", f"{router.MAX_REQUEST_HEADERS}, {size(router.MAX_HEADER_BYTES)}", _FIXED),
        ("trailers and chunk extensions of a request", size(framing.MAX_FRAMING_BYTES), _FIXED),
        ("time for a request to arrive", f"{protocol.ARRIVAL_SECONDS:g} s", _FIXED),
        ("body on REST", size(limits.body_bytes), "`limits.body_bytes`"),
        ("arguments of one call on REST", size(MAX_ARGUMENT_BYTES), _FIXED),
        ("nesting of a body", f"{subschemas.MAX_JSON_DEPTH} levels", _FIXED),
        ("values in a body", f"{subschemas.MAX_JSON_VALUES:,}", _FIXED),
        ("how long a caller may say it waits", f"{request.MAX_WAIT_SECONDS:g} s", _FIXED),
        ("connections of clients", f"{limits.connections:,}", "`limits.connections`"),
        (
            "bodies that are still arriving",
            unfinished,
            "`limits.unfinished_bodies`, `limits.unfinished_bytes`",
        ),
        ("heads, bodies and messages that wait to be looked at", "half of these bytes", _FIXED),
        ("answers that clients have not read", size(limits.unread_bytes), "`limits.unread_bytes`"),
        ("the part of these that one principal may hold", f"{limits.share:g}", "`limits.share`"),
        (
            "time to show a key on a connection over the limit",
            f"{connection_limits.SURPLUS_SECONDS:g} s",
            _FIXED,
        ),
        ("requests of one connection that wait for the one before", f"{protocol.MAX_PIPELINED}", _FIXED),
        ("time for a client to read 64 KiB of an answer", f"{request_cycle.READ_SECONDS:g} s", _FIXED),
        (
            "memory of the process",
            f"{memory.MAX_SHARE_OF_MACHINE:.0%} of the container's or machine's",
            "`limits.memory_mb`",
        ),
        ("file descriptors, where the hard limit allows it", f"{MAX_DESCRIPTORS:,}", "`ulimit -H -n`"),
    ]


def _mcp() -> list[Row]:
    return [
        ("body on MCP", size(streamable_http.MOST_BYTES), _FIXED),
        ("MCP sessions", f"{sessions.MOST_SESSIONS:,}", _FIXED),
        ("an idle MCP session", f"{sessions.IDLE_SECONDS / 60:g} min", _FIXED),
        ("an MCP session that is not used", f"{sessions.LONGEST_LIFE / 86_400:g} days", _FIXED),
        ("MCP clients that listen for changes", f"{change_notifications.MOST_LISTENERS:,}", _FIXED),
        (
            "how long an MCP client with a session may take to answer",
            f"{client_requests.ANSWER_SECONDS:g} s",
            _FIXED,
        ),
    ]


def _calls() -> list[Row]:
    limits = default_document({}).limits
    rate = limits.per_user
    assert rate is not None
    seconds = ", ".join(f"{word} {limit:g} s" for word, limit in TIMEOUT_BY_RESPONSE_TIME.items())
    return [
        ("calls of one user", f"{rate.max_calls} in {rate.window_ms / 1000:g} s", "`limits.per_user`"),
        ("calls of one source at once", str(limits.concurrency), "`limits.concurrency`"),
        ("calls of one source that wait", str(limits.waiting), "`limits.waiting`"),
        (
            "how long they wait",
            f"{Bulkhead().max_wait_seconds:g} s, or until shortly before the deadline",
            _FIXED,
        ),
        ("calls in the whole process", f"{limits.process:,}", "`limits.process`"),
        (
            "what one principal may hold of these, and of listeners, followed resources and app sockets",
            f"{limits.share:.0%}",
            "`limits.share`",
        ),
        *_questions(),
        ("threads for functions that are not async, per source", str(functions.MAX_THREADS), _FIXED),
        ("those of them that contend for the interpreter lock", str(threads.MIN_RUNNING), _FIXED),
        ("one attempt, by response time", seconds, "`timeout`, `overrides.<name>.timeout_ms`"),
        ("result", size(limits.result_bytes), "`limits.result_bytes`"),
        ("kept answer", size(result_cache.MAX_CACHED_RESULT_BYTES), _FIXED),
        (
            "kept answers together",
            f"{result_cache.MAX_CACHED_RESULTS:,}, {size(result_cache.MAX_CACHE_BYTES)}",
            _FIXED,
        ),
        *_keys(),
    ]


def _keys() -> list[Row]:
    return [
        ("answer kept for an idempotency key", size(replay.MAX_STORED_BYTES), _FIXED),
        ("how long it is kept", f"{REPLAY_RETENTION_SECONDS / 3600:g} h", _FIXED),
        *_idempotency(),
        ("how long a call of another machine counts as running", f"{replay.MAX_CLAIM_SECONDS:g} s", _FIXED),
    ]


def _questions() -> list[Row]:
    limits, days = default_document({}).limits, multi_round_calls.STATE_SECONDS / 86_400
    return [
        ("calls that wait for an answer", f"{limits.parked:,}", "`limits.parked`"),
        ("those of one user", str(limits.parked_per_user), "`limits.parked_per_user`"),
        ("how long they wait for it", f"{limits.parked_ms / 1000:g} s", "`limits.parked_ms`"),
        ("questions of one call that wait", str(suspended_calls.MAX_PENDING_QUESTIONS), _FIXED),
        (
            "what a source wants remembered with a question",
            f"{size(multi_round_calls.MAX_STATE_BYTES)}, {days:g} day",
            _FIXED,
        ),
    ]


def _servers() -> list[Row]:
    server = McpServer(transport="stdio")
    timeout, start = server.defaults.timeout_ms / 1000, server.start_timeout_ms / 1000
    own = "mcp.servers.<name>"
    return [
        ("message of an MCP server", size(jsonrpc.MAX_MESSAGE_BYTES), _FIXED),
        ("what it may write without an end of line", size(lines.MAX_SKIPPED_BYTES), _FIXED),
        (
            "tools of an MCP server",
            f"{handshake.MOST_LISTED:,} on {handshake.MOST_PAGES} pages, {size(handshake.LARGEST_LIST)}",
            _FIXED,
        ),
        ("definition of one of them", size(validation.LARGEST_DEFINITION), _FIXED),
        ("description of one of them", size(validation.LONGEST_TEXT), _FIXED),
        ("one attempt with an MCP server", f"{timeout:g} s", f"`{own}.defaults.timeout_ms`"),
        ("start of an MCP server", f"{start:g} s", f"`{own}.start_timeout_ms`"),
        ("how long a call waits for a start", f"{_activation():g} s", _FIXED),
        ("consecutive failures that open the breaker of a source", str(Breaker().failures), _FIXED),
    ]


def _apps() -> list[Row]:
    apps = default_document({}).apps
    return [
        ("tools of an app", str(definition.MAX_TOOLS_PER_APP), _FIXED),
        ("definition of one of them", size(definition.MAX_APP_TOOL_BYTES), _FIXED),
        ("start of an app", f"{apps.activation_ms / 1000:g} s", "`apps.activation_ms`"),
        ("one attempt with an app", f"{apps.timeout_ms / 1000:g} s", "`apps.timeout_ms`"),
        ("what a user can set in an app", size(user_admin.SETTINGS_BYTES), _FIXED),
        ("a text an app keeps for a user", f"{app_admin.LONGEST_VALUE:,} characters", _FIXED),
        ("all it keeps for one user", size(app_admin.MOST_BYTES), _FIXED),
        ("devices that listen to one user", str(user_events.MAX_USER_LISTENERS), _FIXED),
        ("what waits for one of them", f"{user_events.MAX_QUEUED_EVENTS} events", _FIXED),
        ("what a user says at once", f"{said.MAX_UTTERANCE_CHARACTERS:,} characters", _FIXED),
    ]


def _activation() -> float:
    return cast("float", next(each.default for each in fields(Activate) if each.name == "limit"))


def _definitions() -> list[Row]:
    return [
        ("tools in the catalog", f"{catalog.MAX_CATALOG_TOOLS:,}", _FIXED),
        ("schema of a tool", f"{size(schemas.MAX_SCHEMA_BYTES)}, {schemas.MAX_SCHEMA_DEPTH} levels", _FIXED),
        ("ways through a schema", f"{validator.MAX_SCHEMA_PATHS:,}", _FIXED),
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
