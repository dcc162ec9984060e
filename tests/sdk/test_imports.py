"""Authors pay for what they use: the SDK loads no server, no database and no protocol."""

import subprocess
import sys

import pytest

import toolcrib
from toolcrib import hints, sdk

HEAVY = ("aiohttp", "mcp", "rich", "sqlalchemy", "starlette", "uvicorn", "websockets", "yaml", "yarl")


@pytest.mark.parametrize(
    "imported",
    [
        "import toolcrib.sdk",
        pytest.param("from toolcrib.sdk import AppServer", marks=pytest.mark.slow),
    ],
)
def test_importing_the_sdk_loads_no_framework(imported: str) -> None:
    code = f"import sys; {imported}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_author_api_is_importable_from_toolcrib() -> None:
    for name in ("BrandedId", "Registry", "ToolContext", "ToolResult", "create_tool", "tool"):
        assert getattr(toolcrib, name) is getattr(sdk, name)
    assert toolcrib.hints is hints
    assert all(hasattr(toolcrib, name) for name in toolcrib.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'create_tools'"):
        _ = toolcrib.create_tools
