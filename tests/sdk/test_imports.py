"""Authors pay for what they use: the SDK loads no server, no database and no protocol."""

import subprocess
import sys

HEAVY = ("aiohttp", "mcp", "rich", "sqlalchemy", "starlette", "uvicorn", "yaml")


def test_importing_the_sdk_loads_no_framework() -> None:
    code = f"import sys, toolcrib.sdk; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
