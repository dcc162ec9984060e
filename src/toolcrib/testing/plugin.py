"""Pytest plugin: one test per tool and checklist item, and the `crib` fixture for calls through a gateway."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.sdk import AnyTool
    from toolcrib.testing.module_check import CheckedTool, ModuleReport, ToolModule

_NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})

# Imports of Toolcrib are lazy: every pytest run loads this file, but few runs use it.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of Toolcrib."""
    group = parser.getgroup("toolcrib", "Toolcrib tools")
    group.addoption(
        "--toolcrib",
        action="append",
        default=[],
        metavar="MODULE",
        dest="toolcrib_modules",
        help="Check the tools of this module, a dotted name or a file, by the checklist; can be repeated.",
    )
    group.addoption(
        "--toolcrib-run-mutations",
        action="store_true",
        help="Also run the examples of tools that may change data.",
    )
    group.addoption("--toolcrib-user", metavar="ID", help="Run the examples for this user.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each tool and checklist item of the selected modules."""
    for module in cast("list[str]", config.getoption("toolcrib_modules")):
        checks: ToolChecks = _child_node(session, ToolChecks, name=module, nodeid=module)
        items.extend(checks.collect())


class ToolChecks(pytest.Collector):
    """Collector of the tests of one module; the check runs once, with the first test."""

    @cached_property
    def module(self) -> "ToolModule":
        """The loaded module."""
        from toolcrib.testing.module_check import find_module

        return find_module(self.name)

    @cached_property
    def report(self) -> "ModuleReport":
        """Result of the check."""
        from toolcrib.testing.module_check import check_module

        run_mutations = bool(self.config.getoption("toolcrib_run_mutations"))
        return check_module(
            self.module, run_mutations=run_mutations, user=self.config.getoption("toolcrib_user")
        )

    def collect(self) -> Iterator["ToolCheck"]:
        """Yield a test for each tool and item; an unusable module yields one failing test."""
        from toolcrib.sdk.checklist import ITEMS
        from toolcrib.sources.functions import ModuleProblem

        try:
            tools = self.module.tools
        except ModuleProblem as error:
            yield self._test("module", _failing_check(str(error)))
            return
        for tool in tools:
            for item in ITEMS:
                yield self._test(f"{tool.name}[{item.id}]", _item_check(self, tool.name, item.id))
            yield self._test(f"{tool.name}[definition]", _definition_check(self, tool.name))
        yield self._test("published", _published_check(self))

    def _test(self, name: str, check: Callable[[], None]) -> "ToolCheck":
        return _child_node(self, ToolCheck, name=name, check=check)


class ToolCheck(pytest.Item):
    """One test: it passes, fails with advice, or is skipped if it needs human review."""

    def __init__(self, *, check: Callable[[], None], **node_arguments: Any) -> None:
        super().__init__(**node_arguments)  # pyright: ignore[reportUnknownMemberType] - pytest leaves it untyped
        self._check = check

    def runtest(self) -> None:
        """Fail or skip by the result of the check."""
        self._check()

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return the location and name of the test."""
        return self.path, None, self.name


@pytest.fixture
def crib() -> "Callable[..., Crib]":
    """Return a factory of gateways for the given tools, to be opened with `async with`."""
    from toolcrib.crib import Crib

    def make(*tools: "AnyTool", env: Mapping[str, str] = _NO_ENVIRONMENT) -> Crib:
        return Crib(tools, env=env)

    return make


def _child_node(parent: pytest.Collector, kind: Any, **fields: Any) -> Any:
    """Create a node with `from_parent`, whose arguments pytest does not declare as types."""
    return kind.from_parent(parent, **fields)


def _failing_check(message: str) -> Callable[[], None]:
    def check() -> None:
        pytest.fail(message, pytrace=False)

    return check


def _item_check(checks: ToolChecks, name: str, item: str) -> Callable[[], None]:
    def check() -> None:
        checked = _checked_tool(checks, name)
        judgement = checked.judgements[item]
        if judgement.verdict == "short" and checked.ownership == "own":
            pytest.fail(judgement.message, pytrace=False)
        if judgement.verdict in ("short", "person"):
            pytest.skip(f"needs human review: {judgement.message}")

    return check


def _definition_check(checks: ToolChecks, name: str) -> Callable[[], None]:
    def check() -> None:
        messages = "; ".join(each.message for each in _checked_tool(checks, name).findings)
        if messages:
            pytest.fail(messages, pytrace=False)

    return check


def _published_check(checks: ToolChecks) -> Callable[[], None]:
    def check() -> None:
        breaches = [f"{each.tool} {each.message}" for each in checks.report.breaches if each.level == "short"]
        if breaches:
            pytest.fail("\n".join(breaches), pytrace=False)

    return check


def _checked_tool(checks: ToolChecks, name: str) -> "CheckedTool":
    return next(each for each in checks.report.tools if each.tool.local == name)
