"""The pages describe every step, setting, route and error code that the code has."""

import pytest

from tests.docs import inventory
from tests.docs.pages import section, text_of, unmentioned
from toolcrib.config import settings
from toolcrib.errors import CODES
from toolcrib.http import Request, Route
from toolcrib.model import Kind


def headed(page: str, heading: str) -> str:
    """Return what stands under a heading of a page, which must be there."""
    found = section(text_of(page), heading)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found


def test_architecture_page_lists_steps_in_build_order() -> None:
    assert f"`{' → '.join(inventory.steps())}`" in text_of("docs/architecture.md")


@pytest.mark.parametrize("step", inventory.steps())
def test_every_step_is_documented_with_its_settings(step: str) -> None:
    said = headed("docs/steps.md", step)
    assert len(said.split()) > 20
    assert "ettings" in said


def test_every_rule_of_the_policy_is_documented() -> None:
    rules = inventory.found().rules
    assert rules
    for rule in rules:
        assert len(headed("docs/policy.md", rule).split()) > 20, rule


@pytest.mark.parametrize("kind", inventory.source_kinds())
def test_every_kind_of_source_is_documented(kind: str) -> None:
    assert len(headed("docs/sources.md", kind).split()) > 20


def test_every_ready_made_tool_is_documented() -> None:
    tools = [tool.name for tool in inventory.found().tools]
    assert tools
    assert unmentioned(text_of("docs/sources.md"), tools) == []


def test_every_option_of_the_decorator_is_documented() -> None:
    said = headed("docs/tools.md", "Options of `@tool`")
    assert [each for each in inventory.tool_options() if f"| `{each}` |" not in said] == []


def test_every_setting_is_documented() -> None:
    said = headed("docs/config.md", "Every setting")
    assert [each.path for each in settings() if f"| `{each.path}` |" not in said] == []


@pytest.mark.parametrize("command", inventory.commands(), ids=lambda command: command.path)
def test_every_command_and_option_is_documented(command: inventory.Command) -> None:
    page = text_of("docs/cli.md")
    said = page if command.path == "toolcrib" else headed("docs/cli.md", command.path)
    names = [name for spelled, _ in command.options for name in spelled.split() if name.startswith("-")]
    assert [name for name in names if name.rstrip(",") not in said] == []


def route_faults(route: Route, page: str) -> list[str]:
    """Return what a page does not mention of a route."""
    spelled = f"`{route.method} {route.path}`"
    own = section(page, spelled)
    names = [each["name"] for each in route.document.get("parameters", ())]
    found = [f"does not name {name}" for name in unmentioned(page if own is None else own, names)]
    if page.count(spelled) < 2:
        found.append("says nothing beside the table")
    if route.needs is not None and f"| {spelled} | `{route.needs}` |" not in page:
        found.append(f"does not say that it needs {route.needs}")
    return [f"{spelled}: the page {each}" for each in found]


def test_routes_are_documented_with_permission_and_parameters() -> None:
    page = text_of("docs/http.md")
    routes = inventory.found().routes
    assert routes
    assert [fault for route in routes for fault in route_faults(route, page)] == []


def test_the_gate_of_routes_can_fail() -> None:
    async def nothing(request: Request) -> None:
        del request

    document = {"parameters": [{"name": "depth"}]}
    route = Route(
        method="GET", path="/x", handler=nothing, summary="X.", needs="crib:keys", document=document
    )
    assert len(route_faults(route, "")) == 3
    assert route_faults(route, "| `GET /x` | `crib:keys` |\n# `GET /x`\n`depth`\n") == []


def test_every_route_of_the_api_has_an_example_that_can_be_run() -> None:
    page = text_of("docs/http.md")
    without = [
        f"{route.method} {route.path}"
        for route in inventory.found().routes
        if (own := section(page, f"`{route.method} {route.path}`")) is not None and "```sh\ncurl" not in own
    ]
    only_the_page = ["POST /api/signin/exchange", "POST /api/signout"]
    assert without == only_the_page, "only the page itself can exchange a link and sign out"


def test_every_permission_of_the_gateway_is_documented() -> None:
    said = headed("docs/identity.md", "Permissions of the gateway itself")
    needed = inventory.permissions(inventory.found().routes)
    assert "crib:admin" in needed
    assert sorted(each for each in needed if f"| `{each}` |" not in said) == []


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("code", CODES)
def test_every_error_code_is_documented(code: str) -> None:
    said = headed("docs/errors.md", code)
    parts = [said.index(part) for part in ("**Means:**", "**Cause:**", "**Do:**")]
    assert parts == sorted(parts)


def test_no_page_speaks_of_a_code_that_does_not_exist() -> None:
    described = {line[4:] for line in text_of("docs/errors.md").splitlines() if line.startswith("### ")}
    assert described == set(CODES)


def test_every_kind_of_problem_is_documented() -> None:
    assert unmentioned(text_of("docs/errors.md"), [str(kind) for kind in Kind]) == []


def test_every_metric_is_documented() -> None:
    said = headed("docs/observe.md", "Metrics")
    assert [each for each in inventory.found().metrics if f"| `{each}` |" not in said] == []


def test_every_field_of_the_log_is_documented() -> None:
    assert unmentioned(headed("docs/observe.md", "The log"), inventory.log_fields()) == []


def test_every_field_of_calls_and_usage_is_documented() -> None:
    found = inventory.found()
    assert unmentioned(headed("docs/observe.md", "Calls"), found.calls) == []
    assert unmentioned(headed("docs/observe.md", "Usage"), found.usage) == []


def test_everything_that_can_be_dropped_is_documented() -> None:
    sinks = ["log", *inventory.found().status["dropped"]]
    assert unmentioned(headed("docs/observe.md", "Dropped records"), sinks) == []


def test_fields_of_result_status_and_explanation_are_documented() -> None:
    found = inventory.found()
    assert unmentioned(headed("docs/http.md", "The result"), [*found.hints, *found.metadata]) == []
    assert unmentioned(headed("docs/http.md", "`GET /api/status`"), list(found.status)) == []
    assert unmentioned(headed("docs/http.md", "`GET /api/explain`"), found.explanation) == []


def test_every_package_is_in_the_architecture() -> None:
    packages = [name for name in inventory.packages() if name != "__main__"]
    assert unmentioned(headed("docs/architecture.md", "The packages"), packages) == []


@pytest.mark.parametrize(
    "text, word, missing",
    [
        ("see `limit`", "limit", False),
        ("see `limits.per_user`", "limits.per_user", False),
        ("the limit is high", "limit", True),
        ("see `limits`", "limit", True),
        ("see `rate-limit`", "limit", True),
        ("```sh\ncurl limit\n```\n", "limit", False),
    ],
)
def test_the_gate_of_mentions_can_fail(text: str, word: str, missing: bool) -> None:
    assert unmentioned(text, [word]) == ([word] if missing else [])


def test_the_gate_of_headings_can_fail() -> None:
    page = "# A\none\n## B\ntwo\n```sh\n# no heading\n```\n### C\nthree\n## D\nfour\n"
    assert section(page, "B") == "two\n```sh\n# no heading\n```\n### C\nthree\n"
    assert section(page, "D") == "four\n"
    assert section(page, "E") is None
    assert section(page, "no heading") is None
