"""Readers of a page about a provider: they save its program, install the SDK, and run it."""

import os
from pathlib import Path

import anyio

from tests.docs.pages import DOCS, fences
from tests.parts import require

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE = 120.0
KEYS = ("ANTHROPIC_API_KEY", "DEEPGRAM_API_KEY", "ELEVENLABS_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY")


def save(page: str, name: str, folder: Path) -> Path:
    """Save the program of a page that is called so."""
    (program,) = (
        fence for fence in fences((DOCS / "formats" / page).read_text("utf-8")) if fence.file == name
    )
    file = folder / name
    file.write_text(program.code, encoding="utf-8")
    return file


async def run(program: Path, port: int, **more: str) -> str:
    """Run a program in the environment with the SDKs, with a fake server; return its output."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "SSL_"))}
    # With tracing enabled LangChain would make requests.
    keys = dict.fromkeys(KEYS, "secret") | {"LANGSMITH_TRACING": "false"}
    env = {**others, **keys, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{HERE / 'models'}", **more}
    # Without -P the script's folder would precede the packages.
    command = [str(require("providers")), "-P", str(HERE / "pointed.py"), str(port), str(program)]
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(command, env=env, check=False, cwd=program.parent)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout.decode().strip()
