"""Checking values: every fault at once, with file, line and path."""

from time import perf_counter

import pytest

from tests.config.faulty import faults
from toolcrib.config import ConfigError, parse

GOLDEN = """\
server: {host: 0.0.0.0, port: 70000, public_ur: x}
store: mysql://root:hunter2@h/db
shared: redis://x
auth:
  mode: jwt
  admin_key: 12345
  anonymous: {context: opn}
functions: ["my package", ok.mod]
contexts:
  open:
    tools:
      - "*"
      - a b
      - category:querry
      - ":x"
    style: qualified
    provider: openai_realtime
    max_tools: true
  sup port: {tools: }
overrides:
  "a:*":
    category: mutation
    cache_ttl: 5
    expose_as: fine
    rate_limit: 0/min
  "b:x":
    expose_as: Bad-Name
    deprecated: {since: "1", removal_date: soon}
    cache_tll: 4
limits:
  per_usr: 1/s
  per_tool: {"x:*": fast}
  result_bytes: ${SIZE}
mcp:
  servers:
    a: {transport: stdio, env: {A: "${NOPE}"}, pin: off}
    b: {transport: http, enabled: on, tools: [{name: x, expose_as: Q}]}
    c: {transport: carrier pigeon, command: []}
    d: {command: [run, 1]}
log: verbose
metrics: {prefix: a-b}
zzz: 1
"""

EXPECTED = """\
toolcrib.yaml:1 server.port: must be 65535 or less
toolcrib.yaml:1 server.public_ur: is not a setting; did you mean public_url?
toolcrib.yaml:2 store: must be sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME
toolcrib.yaml:3 shared: Redis comes in a later version; use memory
toolcrib.yaml:5 auth.mode: jwt comes in a later version; use keys or trust_header
toolcrib.yaml:6 auth.admin_key: must be text; put it in quotes
toolcrib.yaml:7 auth.anonymous: lets anyone in, so it needs a loopback server.host, such as 127.0.0.1
toolcrib.yaml:7 auth.anonymous.context: names a context that is not under contexts; add it there
toolcrib.yaml:8 functions[0]: must be a module's name, such as my_package.tools
toolcrib.yaml:13 contexts.open.tools[1]: must be a tool's name or a glob with *, without spaces, ? or \
brackets
toolcrib.yaml:14 contexts.open.tools[2]: must name a category: query, mutation, analysis, generation
toolcrib.yaml:15 contexts.open.tools[3]: must have something on both sides of the colon
toolcrib.yaml:16 contexts.open.style: is for REST alone: providers allow no colon in a name; use safe or \
flat
toolcrib.yaml:18 contexts.open.max_tools: must be a number
toolcrib.yaml:19 contexts["sup port"]: is not a context's name; use letters, digits, -, _ and ., at most \
64 of them
toolcrib.yaml:19 contexts["sup port"].tools: has no value; write [] for none, or leave the setting out \
for all
toolcrib.yaml:23 overrides["a:*"].cache_ttl: must be 0 or left out for a mutation, which has to happen \
every time
toolcrib.yaml:24 overrides["a:*"].expose_as: is one tool's name, but a glob may select many; name the \
tool instead
toolcrib.yaml:25 overrides["a:*"].rate_limit: must be a rate, such as 600/min, 10/s or {maxCalls: 600, \
windowMs: 60000}
toolcrib.yaml:27 overrides["b:x"].expose_as: must be a safe name: ^[a-z][a-z0-9_]{0,63}$, such as \
get_weather
toolcrib.yaml:28 overrides["b:x"].deprecated.removal_date: must be a day, such as 2027-01-31
toolcrib.yaml:29 overrides["b:x"].cache_tll: is not a setting; did you mean cache_ttl?
toolcrib.yaml:31 limits.per_usr: is not a setting; did you mean per_user?
toolcrib.yaml:32 limits.per_tool["x:*"]: must be a rate, such as 600/min, 10/s or {maxCalls: 600, \
windowMs: 60000}
toolcrib.yaml:33 limits.result_bytes: needs the variable SIZE, which is not set
toolcrib.yaml:36 mcp.servers.a.command: is missing; a stdio server is started by it
toolcrib.yaml:36 mcp.servers.a.env.A: needs the variable NOPE, which is not set
toolcrib.yaml:37 mcp.servers.b.url: is missing; an http server is reached by it
toolcrib.yaml:37 mcp.servers.b.tools[0].expose_as: must be a safe name: ^[a-z][a-z0-9_]{0,63}$, such as \
get_weather
toolcrib.yaml:38 mcp.servers.c.transport: must be 'stdio', 'http' or 'sse'
toolcrib.yaml:38 mcp.servers.c.command: must not be empty
toolcrib.yaml:39 mcp.servers.d.transport: is missing
toolcrib.yaml:39 mcp.servers.d.command[1]: must be text; put it in quotes
toolcrib.yaml:40 log: must be a mapping of settings
toolcrib.yaml:41 metrics.prefix: must hold letters, digits and _ only
toolcrib.yaml:42 zzz: is not a setting; there are server, store, shared, auth, secrets, functions, contexts, \
overrides, limits, idempotency, metrics, log, traces, search, mcp, apps, reload, openapi, energy, \
allow_private, legacy, pins
"""


@pytest.mark.requirement("I2", "A2")
def test_every_fault_is_reported_at_once_with_its_line_and_path() -> None:
    assert faults(GOLDEN) == EXPECTED.splitlines()


@pytest.mark.parametrize(
    "setting, message",
    [
        ("server: {Port: 1}", "server.Port: is not a setting; did you mean port?"),
        ("sever: {}", "sever: is not a setting; did you mean server?"),
        ("mcp: {server: {}}", "mcp.server: is not a setting; did you mean servers?"),
        ("auth: {anonymous: {}}", "auth.anonymous.context: is missing"),
        (
            "auth: {anonymous: {contxt: a, context: default}}",
            "auth.anonymous.contxt: is not a setting; did you mean context?",
        ),
        ("contexts: [a]", "contexts: must be a mapping"),
        ("contexts: {a: }", "contexts.a: must be a mapping of settings"),
        ("functions: my_package", "functions: must be a list"),
        ("legacy: perhaps", "legacy: must be true or false"),
        ("energy: {start: full}", "energy.start: must be a number"),
        ("energy: {start: -1}", "energy.start: must be 0 or more"),
        ('energy: {start: "inf"}', "energy.start: must be a finite number"),
        ("server: {port: 1.5}", "server.port: must be a whole number"),
        ("server: {host: }", "server.host: must be text; put it in quotes"),
        ("server: {public_url: example.com}", "server.public_url: must be a web address"),
        ("server: {trusted_proxies: [nginx]}", "server.trusted_proxies[0]: must be an address or a range"),
        ("server: {allowed_hosts: ['*.example.com']}", "server.allowed_hosts[0]: must be a host name"),
        ("contexts: {a: {style: fancy}}", "contexts.a.style: must be 'safe', 'flat' or 'qualified'"),
        ("contexts: {a: {provider: gpt}}", "contexts.a.provider: is not a format; there are anthropic,"),
        ("overrides: {a: {permissions: x}}", "overrides.a.permissions: must be a list"),
        ("overrides: {a: {expose_as: 9lives}}", "overrides.a.expose_as: must be a safe name"),
        ('overrides: {"a:*": {aliases: [b]}}', 'overrides["a:*"].aliases: are one tool\'s names'),
        ("openapi: {a: {}}", "openapi.a.document: is missing"),
        ("limits: {per_user: {maxCalls: 1}}", "limits.per_user: must be a rate"),
        ("limits: {concurrency: 0}", "limits.concurrency: must be 1 or more"),
        ("log: {level: loud}", "log.level: must be 'debug', 'info', 'warning' or 'error'"),
        ("reload: {wach: true}", "reload.wach: is not a setting; did you mean watch?"),
        ("reload: {watch: often}", "reload.watch: must be true or false"),
        ("pins: {'files:*': x}", 'pins["files:*"]: must be one tool\'s whole name, such as files:read_file'),
        ("pins: {read_file: x}", "pins.read_file: must be one tool's whole name"),
        ("pins: {'files:read': ''}", 'pins["files:read"]: must not be empty'),
        (f"{'x' * 100}: 1", '["' + "x" * 80 + '…"]: is not a setting; there are server, store'),
    ],
)
def test_fault_names_the_expected_value(setting: str, message: str) -> None:
    (fault,) = faults(setting)
    assert fault.startswith(f"toolcrib.yaml:1 {message}")


def test_parse_error_is_reported_once() -> None:
    assert faults("a: &x 1\nserver: {port: *x}\nfunctions: [*x]\nlegacy: .nan\n") == [
        "toolcrib.yaml:1 a: has an anchor; anchors and aliases are not read, repeat the value",
        "toolcrib.yaml:2 server.port: is an alias; write the value itself",
        "toolcrib.yaml:3 functions[0]: is an alias; write the value itself",
        "toolcrib.yaml:4 legacy: is not a finite number; put it in quotes if text is meant",
    ]


def test_thousands_of_faults_do_not_take_forever() -> None:
    text = "server:\n" + "".join(f"  x{number}: 1\n" for number in range(20_000))
    started = perf_counter()
    with pytest.raises(ConfigError) as refused:
        parse(text, "toolcrib.yaml", {})
    assert perf_counter() - started < 20
    assert len(refused.value.faults) == 20_000
