"""Apps and users made through the routes, as their owners would."""

from typing import Any

from tests.gateways import InProcessGateway, Reply

NOTES = "com.example.notes"
TOOL: dict[str, Any] = {
    "name": "add",
    "description": "Writes a note down.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to write."},
            "times": {"type": "integer", "description": "How often.", "enum": [1, 2]},
        },
        "required": ["text"],
    },
    "mentraExtensions": {
        "activationPhrases": {"en": ["note"], "de": ["notiere"]},
        "category": "productivity",
    },
}


async def register(
    gateway: InProcessGateway, package: str = NOTES, key: str | None = None, **more: Any
) -> str:
    """Register an app with one tool; its API key."""
    who: Any = {} if key is None else {"key": key}
    body = {"name": "Notes", "publicUrl": "http://127.0.0.1:9/app", **more}
    made = await gateway.request("PUT", f"/api/apps/{package}", body=body, **who)
    assert made.status == 201, made.body
    stored = await gateway.request("POST", f"/api/apps/{package}/tools", body={"tools": [TOOL]}, **who)
    assert stored.status == 200, stored.body
    return made.json["apiKey"]


async def install_for_user(gateway: InProcessGateway, user: str = "ann", **session: Any) -> Reply:
    """Install the notes for a user, and begin a session."""
    installed = await gateway.request("PUT", f"/api/users/{user}/apps/{NOTES}")
    assert installed.status == 201, installed.body
    begun = await gateway.request("PUT", f"/api/users/{user}/session", body=session)
    assert begun.status == 200, begun.body
    return begun
