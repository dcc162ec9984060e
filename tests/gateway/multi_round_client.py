"""A gateway with one eliciting tool, and a client that calls it in several rounds."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from toolcrib.catalog import Catalog
from toolcrib.gateway import Completion, Gateway, ProcessSlots, StateSigner, SuspensionLimits
from toolcrib.interfaces import Offer
from toolcrib.model import Call, Caller, JsonObject, Result
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Contexts, PermissionsRule, Policy
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.deadline import Deadline
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.steps.verify import Verify
from toolcrib.testing import Recordings, a_caller, a_tool

FORMS: JsonObject = {"elicitation": {}}
KEY = b"k" * 32
Answer = Callable[[Call], Awaitable[Result]]


def form(message: str = "Which seat?") -> JsonObject:
    """The parameters of an elicitation."""
    return {"message": message, "requestedSchema": {"type": "object", "properties": {}}}


async def seat(call: Call) -> Result:
    """Elicit one answer and return it."""
    assert call.channel is not None
    return Result(data=await call.channel.ask("elicitation/create", form()))


class MultiRoundClient:
    """A client of multi-round calls, which records the calls and their outcomes."""

    def __init__(
        self,
        answer: Answer,
        *,
        wait: float = 60.0,
        places: SuspensionLimits | None = None,
        slots: ProcessSlots | None = None,
        **fields: Any,
    ) -> None:
        self.answer, self.recordings, self.places = answer, Recordings(), places or SuspensionLimits()
        self.places.parked_seconds = wait
        self.calls: list[Call] = []
        self.running = 0
        tool = a_tool("fake:book", **{"family": "mcp", "timeout": 30.0, **fields})
        ids = iter(range(10_000_000))
        steps = (
            Record(self.recordings),
            Recover(),
            Deadline(),
            Verify(),
            Attempt(lambda _source: None),
        )
        self.gateway = Gateway(
            Policy([Contexts({"other": Context()}), PermissionsRule()]),
            lambda tool: compose(steps, tool, self._carry_out),
            Completion(lambda _tool: (1.0, 0.0, 0)),
            self.recordings,
            new_id=lambda: f"id-{next(ids)}",
            contexts=dict,
            slots=slots,
            state_signer=StateSigner(lambda: KEY),
            suspension_limits=self.places,
        )
        catalog = Catalog(["fake"])
        catalog.listen(self.gateway.adopt)
        catalog.replace("fake", Offer(tools=[tool, a_tool("fake:other", family="mcp")]))

    async def _carry_out(self, call: Call) -> Result:
        self.calls.append(call)
        self.running += 1
        try:
            return await self.answer(call)
        finally:
            self.running -= 1

    async def say(
        self,
        state: str = "",
        answers: JsonObject | None = None,
        *,
        name: str = "fake:book",
        arguments: JsonObject | None = None,
        caller: Caller | None = None,
        capabilities: JsonObject = FORMS,
        **more: Any,
    ) -> Result:
        """Make the call, or continue it with answers."""
        return await self.gateway.call_with_questions(
            name,
            arguments if arguments is not None else {"day": 1},
            caller or a_caller(),
            capabilities=capabilities,
            answers=answers,
            state=state,
            **more,
        )

    @property
    def ends(self) -> list[str]:
        """Outcomes of the ended calls."""
        return [each.problem.code if each.problem else "success" for _, each, _ in self.recordings.heard]


@asynccontextmanager
async def multi_round_client(answer: Answer = seat, **more: Any) -> AsyncGenerator[MultiRoundClient]:
    """Open a client; at the end of the block no call may be left."""
    opened = MultiRoundClient(answer, **more)
    try:
        yield opened
    finally:
        await opened.gateway.close()
    assert (opened.running, opened.places.used_slots, opened.places.waiting(), opened.places.calls) == (
        0,
        0,
        0,
        set(),
    )


def state_of(result: Result) -> str:
    """The state of a result with questions."""
    assert result.ask is not None, result
    return result.ask.state
