"""Checking values: every fault at once, with file, line and path."""

from time import perf_counter

import pytest

from tests.config.faulty import faults
from tests.texts import matches
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


@pytest.mark.requirement("I2", "A2")
def test_every_fault_is_reported_at_once_with_its_line_and_path() -> None:
    assert matches("config", "every fault is reported at once", "\n".join(faults(GOLDEN)))


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
        (
            "server: {public_url: example.com}",
            "server.public_url: must be a URL, such as https://tools.example.com",
        ),
        (
            "server: {trusted_proxies: [nginx]}",
            "server.trusted_proxies[0]: must be an IP address or network, such as 10.0.0.0/8",
        ),
        ("server: {allowed_hosts: ['*.example.com']}", "server.allowed_hosts[0]: must be a host name"),
        ("contexts: {a: {hints: all}}", "contexts.a.hints: must be 'off', 'errors', 'brief' or 'full'"),
        ("contexts: {a: {hints: false}}", "contexts.a.hints: must be 'off', 'errors', 'brief' or 'full'"),
        ("contexts: {a: {style: fancy}}", "contexts.a.style: must be 'safe', 'flat' or 'qualified'"),
        (
            "contexts: {a: {provider: gpt}}",
            "contexts.a.provider: is not a known format; use one of anthropic,",
        ),
        ("overrides: {a: {permissions: x}}", "overrides.a.permissions: must be a list"),
        ("overrides: {a: {expose_as: 9lives}}", "overrides.a.expose_as: must be a safe name"),
        (
            'overrides: {"a:*": {aliases: [b]}}',
            'overrides["a:*"].aliases: must be for a single tool, but a glob may match several',
        ),
        ("openapi: {a: {}}", "openapi.a.document: is missing"),
        ("limits: {per_user: {maxCalls: 1}}", "limits.per_user: must be a rate"),
        ("limits: {concurrency: 0}", "limits.concurrency: must be 1 or more"),
        ("log: {level: loud}", "log.level: must be 'debug', 'info', 'warning' or 'error'"),
        ("reload: {wach: true}", "reload.wach: is not a setting; did you mean watch?"),
        ("reload: {watch: often}", "reload.watch: must be true or false"),
        ("pins: {'files:*': x}", 'pins["files:*"]: must be the full name of a tool, such as files:read_file'),
        ("pins: {read_file: x}", "pins.read_file: must be the full name of a tool, such as files:read_file"),
        ("pins: {'files:read': ''}", 'pins["files:read"]: must not be empty'),
        (f"{'x' * 100}: 1", '["' + "x" * 80 + '…"]: is not a setting; use one of server, store'),
    ],
)
def test_fault_names_the_expected_value(setting: str, message: str) -> None:
    (fault,) = faults(setting)
    assert fault.startswith(f"toolcrib.yaml:1 {message}")


def test_parse_error_is_reported_once() -> None:
    assert faults("a: &x 1\nserver: {port: *x}\nfunctions: [*x]\nlegacy: .nan\n") == [
        "toolcrib.yaml:1 a: has an anchor; anchors and aliases are not supported, repeat the value",
        "toolcrib.yaml:2 server.port: is an alias, which is not supported; write the value itself",
        "toolcrib.yaml:3 functions[0]: is an alias, which is not supported; write the value itself",
        "toolcrib.yaml:4 legacy: is not a finite number; put it in quotes if text is meant",
    ]


def test_thousands_of_faults_do_not_take_forever() -> None:
    text = "server:\n" + "".join(f"  x{number}: 1\n" for number in range(20_000))
    started = perf_counter()
    with pytest.raises(ConfigError) as refused:
        parse(text, "toolcrib.yaml", {})
    assert perf_counter() - started < 20
    assert len(refused.value.faults) == 20_000
