"""Idempotency keys over MCP, in both eras: sent in `_meta`, not relayed, and reported when replayed."""

from typing import Any

import httpx2
import pytest

from tests.frontends.mcp.messages import ENVELOPE, LEGACY_HEADERS, answer_of, ask, message, open_session
from tests.gateways import ADMIN, listening, open_gateway
from toolcrib import create_tool
from toolcrib.mcp.jsonrpc import INVALID_REQUEST

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

KEY, REPLAYED = "toolcrib/idempotencyKey", "toolcrib/replayed"


class Client:
    """Calls one tool as a client of either era does."""

    def __init__(self, http: httpx2.AsyncClient, url: str, session: str | None) -> None:
        self._http, self._url, self._session = http, url, session

    async def pay(self, key: object = "k", amount: int = 5) -> dict[str, Any]:
        """Call it, and return the whole answer."""
        meta = {KEY: key, **({} if self._session else ENVELOPE)}
        sent = message("tools/call", name="pay", arguments={"amount": amount}, _meta=meta)
        if self._session is None:
            return answer_of(await ask(self._http, self._url, sent))
        headers = {**LEGACY_HEADERS, "mcp-session-id": self._session}
        return answer_of(await self._http.post(self._url, json=sent, headers=headers))


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_request_made_twice_is_carried_out_once(era: str) -> None:
    taken: list[int] = []

    @create_tool(category="mutation")
    async def pay(amount: int) -> dict[str, int]:
        """Take an amount of money."""
        taken.append(amount)
        return {"payment": len(taken)}

    headers = {"authorization": f"Bearer {ADMIN}"}
    async with (
        open_gateway(tools=(pay,)) as gateway,
        listening(gateway.server) as place,
        httpx2.AsyncClient(headers=headers) as http,
    ):
        url = f"{place}/mcp"
        client = Client(http, url, await open_session(http, url) if era == "handshake" else None)
        first, again = (await client.pay())["result"], (await client.pay())["result"]
        assert first["structuredContent"] == again["structuredContent"] == {"payment": 1}
        assert (REPLAYED in first["_meta"], again["_meta"][REPLAYED]) == (False, True)
        other = (await client.pay(amount=6))["result"]
        assert other["isError"] is True
        assert other["_meta"]["toolcrib/error"]["code"] == "IDEMPOTENCY_MISMATCH"
        refused = (await client.pay(key="no key"))["error"]
        assert (refused["code"], refused["data"]["toolcrib/error"]["path"]) == (
            INVALID_REQUEST,
            f"_meta.{KEY}",
        )
        assert taken == [5]
