"""An app written with our own SDK, called over HTTP: what it checks, what it answers, what becomes of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import time
from typing import Any

import pytest

from tests.sources.apps.registered import KEY, LOOPBACK, TODO, FakeAppStore, FakeSessions, call_to, record
from toolcrib.apps.definition import stored_tool
from toolcrib.egress import AddressRules
from toolcrib.egress.json_post import JsonPoster
from toolcrib.errors import ToolcribError
from toolcrib.formats.rest import as_json
from toolcrib.interfaces.apps import AppRecord
from toolcrib.sdk import AppContext, AppServer, ToolResult, create_tool
from toolcrib.sources.apps import AppSource

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ITEM = {"item": {"type": "string", "description": "What to add."}}


async def add(arguments: dict[str, Any], context: AppContext) -> Any:
    """Do as the item says."""
    item = arguments["item"]
    if item == "raise":
        raise RuntimeError("kaput")
    if item == "show":
        return ToolResult(data={"shown": True}, message="Look.", suppress_voice=True, follow_ups=("Hide it",))
    return f"{item} for {context.user_id}, {context.activated_for_tool}, {context.call_id}"


@asynccontextmanager
async def served(**fields: Any) -> AsyncGenerator[tuple[AppSource, AppRecord]]:
    app = AppServer(package=TODO, api_key=KEY)
    app.register_tool(
        create_tool(name="add", description="Adds.", parameters=ITEM, required=["item"], handler=add)
    )
    async with app.serving(host="127.0.0.1", port=0) as url:
        tools = tuple(stored_tool(each) for each in app.get_tool_definitions())
        kept, post = record(url=url, tools=tools, **fields), JsonPoster(AddressRules.same(LOOPBACK))
        source = AppSource(FakeAppStore(kept).all, FakeSessions(), post, clock=time)
        await source.refresh()
        yield source, kept
        await post.close()


@pytest.mark.requirement("D6")
async def test_sdk_app_receives_identity_and_answers_are_read() -> None:
    async with served() as (source, app):
        text = await source.call(call_to(app, id="c-1", activated=True))
        shown = as_json(await source.call(call_to(app, arguments={"item": "show"})))
        raised = (await source.call(call_to(app, arguments={"item": "raise"}))).problem
    assert text.data.split(", ") == ["milk for ann@example.com", "True", "c-1"]
    assert (shown["content"], shown["message"]) == ({"shown": True}, "Look.")
    assert shown["mentraExtensions"] == {"suppressVoiceResponse": True, "suggestedFollowUps": ["Hide it"]}
    assert raised is not None
    assert (raised.code, raised.retryable) == ("HANDLER_ERROR", False)


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("digest", [None, "0" * 64], ids=["no key", "another key"])
async def test_sdk_app_refuses_wrong_key(digest: str | None) -> None:
    async with served(digest=digest) as (source, app):
        with pytest.raises(ToolcribError) as refused:
            await source.call(call_to(app))
    problem = refused.value.problem
    assert (problem.code, problem.tool_code, problem.retryable) == ("HTTP_ERROR", "UNAUTHENTICATED", False)


@pytest.mark.requirement("D15")
async def test_a_tool_it_does_not_know_is_not_found_there() -> None:
    async with served() as (source, app):
        call = call_to(app)
        renamed = call.replace(tool=replace(call.tool, name=f"{TODO}:remove"))
        with pytest.raises(ToolcribError, match="HTTP 404") as refused:
            await source.call(renamed)
    assert refused.value.problem.tool_code == "TOOL_NOT_FOUND"
