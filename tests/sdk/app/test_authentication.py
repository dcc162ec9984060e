"""Which requests an app accepts, and where its sessions may connect."""

from time import time

import pytest

from tests.sdk.app.fake_gateway import KEY, an_app
from toolcrib.sdk import AppServer
from toolcrib.sdk.app.authentication import GatewayAuthentication


@pytest.mark.parametrize(
    "gateway, url, home",
    [
        ("https://gw.example", "wss://gw.example/app-ws", True),
        ("https://gw.example/", "wss://GW.example:443/app-ws", True),
        ("wss://gw.example/app-ws", "wss://gw.example/app-ws", True),
        ("http://127.0.0.1:6740", "ws://127.0.0.1:6740/app-ws", True),
        ("https://gw.example", "ws://gw.example/app-ws", False),
        ("https://gw.example", "wss://gw.example:444/app-ws", False),
        ("https://gw.example", "wss://gw.example.evil.example/app-ws", False),
        ("https://gw.example", "wss://gw.example@evil.example/app-ws", False),
        ("https://gw.example", "https://gw.example/app-ws", False),
        (None, "ws://anywhere.example/app-ws", True),
        (None, "http://anywhere.example/app-ws", False),
        (None, "ws://host:port/", False),
    ],
)
def test_where_sessions_may_lead(gateway: str | None, url: str, home: bool) -> None:
    assert GatewayAuthentication(KEY, gateway=gateway, signed=True, clock=time).is_gateway_url(url) is home


def test_an_app_that_cannot_be_safe_is_refused() -> None:
    with pytest.raises(ValueError, match="signed=False accepts unsigned requests"):
        an_app(signed=False)
    with pytest.raises(ValueError, match="URL of a gateway"):
        an_app(gateway="gateway")
    with pytest.raises(ValueError, match="api_key"):
        AppServer(package="com.example.app", api_key="")


def test_the_key_is_not_shown() -> None:
    app = an_app()
    assert repr(app) == "<AppServer com.example.reminder>"
    assert KEY not in str(vars(app))
