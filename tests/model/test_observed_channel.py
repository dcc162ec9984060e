"""The observed channel reports the first pending question and the end of the last."""

import anyio
import pytest

from tests.waiting import until
from toolcrib.model import JsonObject, ObservedChannel, Unanswered

pytestmark = pytest.mark.anyio


class Line:
    """A channel whose answers the test releases."""

    owner, alone, level = "me", False, "info"
    capabilities: JsonObject = {"roots": {}}  # noqa: RUF012 - nobody changes it

    def __init__(self) -> None:
        self.going = {"a": anyio.Event(), "b": anyio.Event()}
        self.told: list[JsonObject] = []

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        await self.going[method].wait()
        if params:
            raise Unanswered(-1, "no")
        return {"said": method}

    async def log(self, params: JsonObject) -> None:
        self.told.append(params)


async def test_concurrent_questions_count_as_one_wait() -> None:
    line, heard, said = Line(), list[str](), list[JsonObject]()
    overheard = ObservedChannel(line, lambda: heard.append("asked"), lambda: heard.append("over"))

    async def ask(method: str) -> None:
        said.append(await overheard.ask(method, {}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "a")
        tasks.start_soon(ask, "b")
        await until(lambda: heard == ["asked"])
        line.going["b"].set()
        await until(lambda: said == [{"said": "b"}])
        assert heard == ["asked"]
        line.going["a"].set()
    assert heard == ["asked", "over"]


async def test_failed_question_ends_the_wait() -> None:
    line, heard = Line(), list[str]()
    overheard = ObservedChannel(line, lambda: heard.append("asked"))
    line.going["a"].set()
    with pytest.raises(Unanswered):
        await overheard.ask("a", {"no": True})
    with pytest.raises(Unanswered):
        await overheard.ask("a", {"no": True})
    assert heard == ["asked", "asked"]
    await overheard.log({"data": 1})
    assert (overheard.owner, overheard.alone, overheard.level) == ("me", False, "info")
    assert (overheard.capabilities, line.told) == ({"roots": {}}, [{"data": 1}])
