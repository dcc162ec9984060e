"""Protocol revisions in two eras, and what each revision introduced."""

from typing import Literal

Era = Literal["modern", "legacy"]
"""`modern`: stateless requests (2026-07-28). `legacy`: an `initialize` handshake first (up to 2025-11-25)."""

MODERN = "2026-07-28"
LEGACY_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with an `initialize` handshake and a session, oldest first."""
LEGACY = LEGACY_REVISIONS[-1]
REVISIONS = (*LEGACY_REVISIONS, MODERN)

BATCH_REVISION = "2025-03-26"
"""The only revision with JSON-RPC batches."""
REVISION_HEADER_SINCE = "2025-06-18"
"""The first revision with the MCP-Protocol-Version header."""
STRUCTURED_CONTENT_SINCE = "2025-06-18"
"""The first revision with `structuredContent` besides the content blocks of a result."""
FIELDS_SINCE = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
"""The revision that introduced a field of any definition; absent for a field of the first revision."""
TOOL_FIELDS_SINCE = {**FIELDS_SINCE, "annotations": "2025-03-26", "outputSchema": "2025-06-18"}
"""The revision that introduced a field of a tool definition."""
BLOCKS_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revision that introduced a type of content block."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, least severe first."""
