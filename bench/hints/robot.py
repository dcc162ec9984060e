"""A robot without a language model: it makes a call and follows the first action that it is given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from bench.hints.faults import Fault, ValidCall
from bench.hints.gateway import RobotGateway
from bench.hints.judge import Advice, Suggestion, is_harmful
from bench.hints.toolset import Request
from tests.gateways import Reply


@dataclass(frozen=True, kw_only=True)
class FollowedFault:
    """A fault, what was advised, and what came of following it."""

    fault: Fault
    advice: Advice
    followed: Suggestion | None
    status: int | None
    """The HTTP status of following it."""

    @property
    def repaired(self) -> bool:
        """Whether the robot followed the one repair there is, and it was accepted."""
        if self.followed is None or self.status is None:
            return False
        if self.fault.route is not None:
            return self.followed.route == self.fault.route and self.status == 200
        if self.fault.expected is None or self.followed.call != self.fault.expected:
            return False
        # A wait is only noted, so the call after a rate limit is not expected to succeed.
        return self.status == 200 or (bool(self.fault.repetitions) and self.followed.after is not None)

    @property
    def harmful(self) -> bool:
        call = None if self.followed is None else self.followed.call
        return call is not None and is_harmful(self.fault, call, self.advice.tools)


class Robot:
    """Calls over REST, each group of faults as a user of its own."""

    def __init__(self, opened: RobotGateway) -> None:
        self.opened = opened
        self._users = 0

    async def working(self, calls: Iterable[ValidCall]) -> tuple[list[ValidCall], list[str]]:
        """Return the calls that are as valid here as they look, and the tools of the others."""
        kept: list[ValidCall] = []
        failing: list[str] = []
        for call in calls:
            works = self._is_removed(call) or (await self._prepared(call)).status == 200
            kept += [call] if works else []
            failing += [] if works else [call.request.tool]
        return kept, failing

    async def follow(self, faults: Sequence[Fault]) -> list[FollowedFault]:
        """Make every faulty call, and follow what is advised first; those of one valid call share a user."""
        found: list[FollowedFault] = []
        for _, group in groupby(faults, key=lambda fault: (fault.valid.request.tool, fault.repetitions)):
            user = await self.new_user()
            found += [await self._follow(fault, fault.valid.user or user) for fault in group]
        return found

    async def advice(self, request: Request, user: str) -> Advice:
        """Make a call, and return what is advised."""
        visible = await self.opened.visible(user)
        return Advice(request, (await self.opened.call(request, user)).json, visible)

    async def new_user(self) -> str:
        """Begin the session of a user who has not called anything."""
        self._users += 1
        user = f"robot-{self._users}"
        await self.opened.begin(user)
        return user

    async def _follow(self, fault: Fault, user: str) -> FollowedFault:
        await self.opened.visible(user)
        await self._prepare(fault.valid, user)
        for _ in range(fault.repetitions):
            await self.opened.call(fault.sent, user)
        if fault.route is not None:
            await self.opened.end(user)
        advice = await self.advice(fault.sent, user)
        followed = advice.first
        reply = None if followed is None else await self._do(followed, user)
        if fault.route is not None:
            await self.opened.begin(user)
        status = None if reply is None else reply.status
        return FollowedFault(fault=fault, advice=advice, followed=followed, status=status)

    async def _do(self, suggestion: Suggestion, user: str) -> Reply:
        if suggestion.call is not None:
            return await self.opened.call(suggestion.call, user)
        request = suggestion.data["request"]
        return await self.opened.gateway.request(
            request["method"], request["path"], body=request.get("body", {})
        )

    async def _prepared(self, call: ValidCall) -> Reply:
        user = call.user or await self.new_user()
        await self._prepare(call, user)
        return await self.opened.call(call.request, user)

    async def _prepare(self, call: ValidCall, user: str) -> None:
        for request in call.before:
            await self.opened.call(request, user)

    def _is_removed(self, call: ValidCall) -> bool:
        """A tool past its removal date is called all the same, by those who have known it."""
        found = self.opened.tools.find(call.request.tool)
        return found is not None and found.tool.deprecated is not None
