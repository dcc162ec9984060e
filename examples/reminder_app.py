"""A mini-app in a few lines: its tool shows what is noted on the user's glasses, and says so.

Run it with its API key in REMINDER_KEY; README.md says where that comes from, and how the tool is called.
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
