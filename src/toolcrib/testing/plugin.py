"""The pytest plugin: a test of each item of the checklist for the tools of a module, and gateways to call."""

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

# Everything of ours is imported late: every run of pytest loads this file, and few ask for a check.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("toolcrib", "tools of Toolcrib")
    group.addoption(
        "--toolcrib",
        action="append",
        default=[],
        metavar="MODULE",
        dest="toolcrib_modules",
        help="Hold the tools of this module, a dotted name or a file, to the checklist; can come again.",
    )
    group.addoption(
        "--toolcrib-run-mutations",
        action="store_true",
        help="Run the examples of tools that may change something too.",
    )
    group.addoption("--toolcrib-user", metavar="ID", help="Run the examples for this user.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each item of the checklist and each tool of the modules that were named."""
    for module in cast("list[str]", config.getoption("toolcrib_modules")):
        checks: ToolChecks = _child_node(session, ToolChecks, name=module, nodeid=module)
        items.extend(checks.collect())


class ToolChecks(pytest.Collector):
    """The tests of one module's tools. It is tried out once, when the first of them runs."""

    @cached_property
    def module(self) -> "ToolModule":
        """The module, loaded."""
        from toolcrib.testing.module_check import find_module

        return find_module(self.name)

    @cached_property
    def report(self) -> "ModuleReport":
        """What the check found."""
        from toolcrib.testing.module_check import check_module

        run_mutations = bool(self.config.getoption("toolcrib_run_mutations"))
        return check_module(
            self.module, run_mutations=run_mutations, user=self.config.getoption("toolcrib_user")
        )

    def collect(self) -> Iterator["ToolCheck"]:
        """Give a test for each tool and item; a module that cannot be used is one test, which fails."""
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

    def _test(self, name: str, look: Callable[[], None]) -> "ToolCheck":
        return _child_node(self, ToolCheck, name=name, look=look)


class ToolCheck(pytest.Item):
    """One test: it passes, fails with what to do, or is skipped where only a person can tell."""

    def __init__(self, *, look: Callable[[], None], **more: Any) -> None:
        super().__init__(**more)  # pyright: ignore[reportUnknownMemberType] - pytest leaves it untyped
        self._look = look

    def runtest(self) -> None:
        """Look at what was found."""
        self._look()

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Say what this is a test of."""
        return self.path, None, self.name


@pytest.fixture
def crib() -> "Callable[..., Crib]":
    """Give what makes a gateway of tools, to be opened with `async with`."""
    from toolcrib.crib import Crib

    def make(*tools: "AnyTool", env: Mapping[str, str] = _NO_ENVIRONMENT) -> Crib:
        return Crib(tools, env=env)

    return make


def _child_node(parent: pytest.Collector, kind: Any, **fields: Any) -> Any:
    """Make a node the way pytest wants it, which it does not tell the type checker."""
    return kind.from_parent(parent, **fields)


def _failing_check(message: str) -> Callable[[], None]:
    def look() -> None:
        pytest.fail(message, pytrace=False)

    return look


def _item_check(checks: ToolChecks, name: str, item: str) -> Callable[[], None]:
    def look() -> None:
        checked = _checked_tool(checks, name)
        judged = checked.judged[item]
        if judged.verdict == "short" and checked.standing == "own":
            pytest.fail(judged.message, pytrace=False)
        if judged.verdict in ("short", "person"):
            pytest.skip(f"for a person: {judged.message}")

    return look


def _definition_check(checks: ToolChecks, name: str) -> Callable[[], None]:
    def look() -> None:
        wrong = "; ".join(each.message for each in _checked_tool(checks, name).more)
        if wrong:
            pytest.fail(wrong, pytrace=False)

    return look


def _published_check(checks: ToolChecks) -> Callable[[], None]:
    def look() -> None:
        broken = [f"{each.tool} {each.message}" for each in checks.report.breaches if each.level == "short"]
        if broken:
            pytest.fail("\n".join(broken), pytrace=False)

    return look


def _checked_tool(checks: ToolChecks, name: str) -> "CheckedTool":
    return next(each for each in checks.report.tools if each.tool.local == name)
