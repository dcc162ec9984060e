"""A state machine compares idempotency keys with a small reference model."""

from collections.abc import AsyncGenerator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.steps.replay_steps import ReplaySteps, code, keyed, replay_steps
from toolcrib.errors import Failed, Lost, Refused
from toolcrib.model import Ask, Call, Result

pytestmark = pytest.mark.anyio

ROUNDS = count()
ENDS = ("good", "failed", "lost", "refused", "retryable", "asked")
FREES = frozenset({"refused", "retryable", "asked"})
ASKED = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 1), st.sampled_from(ENDS)), max_size=12)


@pytest.fixture
async def steps() -> AsyncGenerator[ReplaySteps]:
    async with replay_steps() as opened:
        yield opened


class Tool:
    """Ends with the given outcome and counts its calls."""

    def __init__(self) -> None:
        self.done, self.end = 0, ""

    async def __call__(self, call: Call) -> Result:
        self.done += 1
        errors = {
            "failed": Failed("HANDLER_ERROR", "it raised"),
            "lost": Lost("OUTCOME_UNKNOWN", "nobody knows"),
            "refused": Refused("INVALID_ARGUMENTS", "not so"),
            "retryable": Failed("TOOL_FAILED", "later", retryable=True),
        }
        if self.end in errors:
            raise errors[self.end]
        if self.end == "asked":
            return Result(ask=Ask(questions={"q": {"method": "roots/list"}}))
        return Result(data=self.done)


@pytest.mark.requirement("E12")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=ASKED)
async def test_keys_agree_with_the_model(steps: ReplaySteps, asked: list[tuple[str, int, str]]) -> None:
    tool, mine = Tool(), next(ROUNDS)
    chain = steps.chain(tool)
    kept: dict[str, tuple[int, Result]] = {}
    for key, body, tool.end in asked:
        before = tool.done
        result = await chain(keyed(f"{mine}-{key}", arguments={"body": body}))
        if key not in kept:
            assert tool.done == before + 1
            if tool.end not in FREES:
                kept[key] = (body, result)
            continue
        known, first = kept[key]
        assert tool.done == before
        if body != known:
            assert code(result) == "IDEMPOTENCY_MISMATCH"
        else:
            assert (result.data, result.problem) == (first.data, first.problem)
