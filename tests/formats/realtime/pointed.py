"""A program for the environment that has the providers' SDKs: runs another, with SDKs that call loopback.

Theirs is the address that an SDK would use by itself; some of them have no variable for it.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import runpy
import sys


def point(port: str) -> None:
    """Make the servers of two providers be at this port."""
    from deepgram.environment import DeepgramClientEnvironment
    from elevenlabs.environment import ElevenLabsEnvironment

    DeepgramClientEnvironment.PRODUCTION.agent = f"ws://127.0.0.1:{port}"
    ElevenLabsEnvironment.PRODUCTION._value_ = f"http://127.0.0.1:{port}"


if __name__ == "__main__":
    point(sys.argv[1])
    runpy.run_path(sys.argv[2], run_name="__main__")
