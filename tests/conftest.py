"""What every test has at hand: the event loop it runs on, the real parts, and no hurry for hypothesis."""

import pytest
from hypothesis import settings

pytest_plugins = ("tests.parts.fixtures", "tests.parts.pages")

# A busy machine is no bug: limits of time belong to the tests that measure time.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": False})
