"""Example tools like those of real servers, few enough to predict search results."""

from toolcrib.model import JsonObject, Tool
from toolcrib.testing import a_tool


def _takes(**described: str) -> JsonObject:
    fields = {name: {"type": "string", "description": text} for name, text in described.items()}
    return {"type": "object", "properties": fields}


EXAMPLE_TOOLS: tuple[Tool, ...] = (
    a_tool("calendar:create_event", description="Add an appointment to a calendar.", tags=("agenda",)),
    a_tool("calendar:list_events", description="List what is on a calendar between two dates."),
    a_tool("mail:sendMessage", description="Send an e-mail to one or more people.", title="Send mail"),
    a_tool("mail:search_messages", description="Look through the mailbox.", category="query"),
    a_tool("files:read_file", description="Read the whole contents of a file."),
    a_tool("files:write_file", description="Write text into a file, in place of what it held."),
    a_tool("files:directory_tree", description="Show a directory and all below it, as JSON."),
    a_tool(
        "github:create_pull_request",
        description="Open a pull request.",
        input_schema=_takes(head="The branch with the changes.", reviewers="Who should look at it."),
    ),
    a_tool("github:list_branches", description="List the branches of a repository."),
    a_tool(
        "weather:forecast",
        description="Say what the weather will be.",
        input_schema=_takes(airport="The ICAO code, such as ENGM.", days="How far ahead."),
    ),
    a_tool("shop:getURLs", description="Categories and queries, as IDs.", tags=("Übersicht",)),
    a_tool(
        "com.example.notes:add",
        family="app",
        description="Keeps a thought.",
        extensions={
            "category": "productivity",
            "activationPhrases": {"en": ["note that"], "de": ["notiere", "merk dir"], "zh": ["记个笔记"]},
        },
    ),
)
