"""Registry of all tool formats, by name."""

from toolcrib.errors import Refused
from toolcrib.formats.anthropic import Anthropic
from toolcrib.formats.deepgram import Deepgram
from toolcrib.formats.elevenlabs import ElevenLabs
from toolcrib.formats.gemini import Gemini
from toolcrib.formats.gemini_live import GeminiLive
from toolcrib.formats.langchain import LangChain
from toolcrib.formats.mcp import McpFormat
from toolcrib.formats.openai_chat import OpenAIChat
from toolcrib.formats.openai_realtime import OpenAIRealtime
from toolcrib.formats.openai_responses import OpenAIResponses
from toolcrib.formats.rest import RestFormat
from toolcrib.interfaces import Format, Provider

_FORMATS: tuple[Format, ...] = (
    RestFormat(),
    McpFormat(),
    OpenAIChat(),
    OpenAIResponses(),
    OpenAIRealtime(),
    Anthropic(),
    Gemini(),
    GeminiLive(),
    GeminiLive(vertex=True),
    Deepgram(),
    ElevenLabs(),
    LangChain(),
)
FORMATS: dict[str, Format] = {each.name: each for each in _FORMATS}
PROVIDERS: dict[str, Provider] = {name: each for name, each in FORMATS.items() if isinstance(each, Provider)}
"""The formats that also parse calls and render results."""


def provider(name: str) -> Provider:
    """Return a provider's format by name, or refuse an unknown one."""
    if name not in PROVIDERS:
        message = f"there is no provider named {name[:100]}; there are {', '.join(PROVIDERS)}"
        raise Refused("INVALID_REQUEST", message, path="format")
    return PROVIDERS[name]


__all__ = ["FORMATS", "PROVIDERS", "McpFormat", "RestFormat", "provider"]
