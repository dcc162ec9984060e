"""A tool that waits until its caller has energy again, for agents that pace themselves."""

from typing import Any

import anyio

from toolcrib.builtin.builtin_source import caller
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.model import JsonObject
from toolcrib.policy.energy import band_of
from toolcrib.sdk import AnyTool, Options, Registry, ToolResult

LONGEST = 55.0
"""How long one call waits, in seconds; whoever needs more calls again."""
MOST = 4
"""How many calls of one caller wait at the same time."""

_WAIT: JsonObject = {
    "name": "await_energy",
    "description": (
        "Wait until there is enough energy again for dearer tools.\n\n"
        "Use it when tools have gone from the list because little energy is left, such as after many calls"
        " in a row. Returns the energy there is then, and its band: high, medium, low or urgent."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "level": {
                "type": "number",
                "minimum": 0,
                "description": "How much energy to wait for; what can never be reached is not waited for.",
            }
        },
        "required": ["level"],
        "additionalProperties": False,
    },
}
_OPTIONS: Options = {
    "title": "Wait for energy",
    "category": "query",
    "response_time": "slow",
    "tags": ["energy", "core"],
    "examples": [
        {
            "description": "Wait until half of the energy is back",
            "params": {"level": 50},
            "expectedResult": {"energy": 50, "band": "medium", "reached": True, "waited": 12.5},
        }
    ],
}


class _Waiting:
    """Who waits, how often at once: whoever does so too often is answered at once."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}

    async def wait(self, who: str, seconds: float) -> None:
        if self._now.get(who, 0) >= MOST:
            return
        self._now[who] = self._now.get(who, 0) + 1
        try:
            await anyio.sleep(seconds)
        finally:
            self._now[who] -= 1
            if not self._now[who]:
                del self._now[who]


def await_energy(meter: EnergyMeter) -> AnyTool:
    """Make the tool over what callers have left."""
    waiting = _Waiting()

    async def wait(arguments: JsonObject) -> ToolResult[dict[str, Any]]:
        who, wanted = caller().id, float(arguments["level"])
        began = anyio.current_time()
        await waiting.wait(who, min(meter.seconds_to(who, wanted) or 0.0, LONGEST))
        left = meter.level(who)
        data = {
            "energy": round(left, 2),
            "band": band_of(left),
            "reached": left >= wanted,
            "waited": round(anyio.current_time() - began, 2),
        }
        return ToolResult(data=data, message=f"There are {left:.0f} of {meter.purse.start:g} energy now.")

    registry = Registry()
    registry.register_tool(_WAIT, wait, **_OPTIONS)
    (tool,) = registry.get_all()
    return tool
