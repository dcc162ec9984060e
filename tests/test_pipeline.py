"""Steps compose in order, and those with nothing to do are not there."""

import pytest

from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.pipeline import compose, step_names
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


class Noting:
    """A step that notes when it is passed."""

    def __init__(self, notes: list[str], mark: str, *, fits: bool = True) -> None:
        self.notes, self.mark, self.fits = notes, mark, fits

    def fit(self, tool: Tool) -> Stage | None:
        del tool
        return self._note if self.fits else None

    async def _note(self, call: Call, proceed: Handler) -> Result:
        self.notes.append(f"{self.mark} in")
        result = await proceed(call)
        self.notes.append(f"{self.mark} out")
        return result


class Absent(Noting):
    """One that never fits."""


async def test_steps_run_in_order_and_unwind_in_reverse() -> None:
    notes: list[str] = []
    steps = (Noting(notes, "a"), Absent(notes, "b", fits=False), Noting(notes, "c"))
    result = await compose(steps, a_tool(), echo)(a_call(arguments={"x": 1}))
    assert result.data == {"x": 1}
    assert notes == ["a in", "c in", "c out", "a out"]
    assert step_names(steps, a_tool()) == ("noting", "noting")


async def test_a_chain_of_nothing_is_its_end() -> None:
    assert compose((), a_tool(), echo) is echo
