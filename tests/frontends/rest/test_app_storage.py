"""What apps keep for their users, in the shapes their kits speak."""

from typing import Any

import pytest

from tests.frontends.rest.app_setup import NOTES, install_for_user, register
from tests.gateways import InProcessGateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D11")]

ALL = "/api/sdk/simple-storage/ann%40x.org"


async def test_app_storage(gateway: InProcessGateway) -> None:
    key = f"{NOTES}:{await register(gateway)}"
    await install_for_user(gateway, "ann%40x.org")
    assert (await gateway.request("GET", ALL, key=key)).json == {"success": True, "data": {}}
    put = await gateway.request("PUT", ALL, key=key, body={"data": {"a/b": "1", "c": "2"}})
    assert put.json == {"success": True}
    assert (await gateway.request("PUT", f"{ALL}/c", key=key, body={"value": "3"})).json == {"success": True}
    assert (await gateway.request("GET", ALL, key=key)).json["data"] == {"a/b": "1", "c": "3"}
    assert (await gateway.request("GET", f"{ALL}/a%2Fb", key=key)).json == {"success": True, "data": "1"}
    assert (await gateway.request("DELETE", f"{ALL}/a%2Fb", key=key)).json == {"success": True}
    assert (await gateway.request("DELETE", f"{ALL}/a%2Fb", key=key)).json == {"success": False}
    assert (await gateway.request("GET", f"{ALL}/a%2Fb", key=key)).code == "NOT_FOUND"
    assert (await gateway.request("DELETE", ALL, key=key)).json == {"success": True}
    assert (await gateway.request("GET", ALL, key=key)).json["data"] == {}


@pytest.mark.requirement("I1")
async def test_app_key_reaches_only_its_own_storage(gateway: InProcessGateway) -> None:
    one = await register(gateway)
    other = await register(gateway, "com.example.other")
    await install_for_user(gateway, "ann%40x.org")
    await gateway.request("PUT", ALL, key=f"{NOTES}:{one}", body={"data": {"a": "1"}})
    for key in (None, one, f"{NOTES}:", f":{one}", f"{NOTES}:{other}", f"com.example.none:{one}"):
        reply = await gateway.request("GET", ALL, key=key)
        assert (reply.status, reply.code) == (401, "UNAUTHENTICATED")
    assert (await gateway.request("GET", ALL)).status == 401, "not even the admin is an app"
    assert (await gateway.request("GET", "/api/tools", key=f"{NOTES}:{one}")).status == 401, (
        "nor an app a caller"
    )
    assert (await gateway.request("GET", ALL, key=f"com.example.other:{other}")).json["data"] == {}
    put = await gateway.request("PUT", ALL, key=f"com.example.other:{other}", body={"data": {"a": "1"}})
    assert put.code == "NOT_FOUND"
    await gateway.request("POST", f"/api/apps/{NOTES}/key/rotate")
    assert (await gateway.request("GET", ALL, key=f"{NOTES}:{one}")).status == 401


async def test_bodies_that_cannot_be(gateway: InProcessGateway) -> None:
    key = f"{NOTES}:{await register(gateway)}"
    await install_for_user(gateway, "ann%40x.org")
    wrong: list[Any] = [{}, [], {"data": []}, {"data": {"a": 1}}, {"data": {}, "b": 1}, {"data": {"": "x"}}]
    for body in wrong:
        assert (await gateway.request("PUT", ALL, key=key, body=body)).code == "INVALID_REQUEST"
    assert (await gateway.request("PUT", f"{ALL}/a", key=key, body={"value": 1})).code == "INVALID_REQUEST"
    large = {"data": {"a": "x" * 100_001}}
    assert (await gateway.request("PUT", ALL, key=key, body=large)).code == "PAYLOAD_TOO_LARGE"
