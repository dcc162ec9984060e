"""A minimal mini-app: its tool adds a reminder, shows all of them on the glasses and speaks a confirmation.

Run it with its API key in REMINDER_KEY; README.md describes how to get the key and how to call the tool.
"""

import os
from typing import Annotated

from pydantic import Field

from toolcrib.sdk import AppContext, AppServer

app = AppServer(package="com.example.reminder", api_key=os.environ["REMINDER_KEY"])
reminders: dict[str | None, list[str]] = {}


@app.tool(name="add_reminder", activation_phrases=["remind me to"], category="productivity")
async def add_reminder(
    text: Annotated[str, Field(description="What to remember.", max_length=200)], ctx: AppContext
) -> str:
    """Add a reminder and show all of them. Use it when something is not to be forgotten."""
    noted = reminders.setdefault(ctx.user_id, [])
    noted.append(text)
    if ctx.session is not None:
        await ctx.session.layouts.show_reference_card("Reminders", "\n".join(noted))
        await ctx.session.audio.speak(f"Noted: {text}.")
    return f"Noted: {text}."


if __name__ == "__main__":
    app.run(port=int(os.environ.get("PORT", "7010")))
