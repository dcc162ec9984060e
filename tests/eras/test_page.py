"""The page on eras shows the table that is tested, and the limits that hold."""

import re

from tests.docs.pages import section, text_of
from tests.eras.era_gateway import ERAS
from tests.eras.walks import WALKS
from toolcrib.config import default_document
from toolcrib.frontends.mcp.client_requests import ANSWER_TIMEOUT_SECONDS
from toolcrib.frontends.mcp.elicitation import MAX_QUESTION_ROUNDS
from toolcrib.gateway.multi_round_calls import STATE_SECONDS
from toolcrib.gateway.suspended_calls import MAX_PENDING_QUESTIONS
from toolcrib.sources.mcp.connection import McpSettings

PAGE = "docs/eras.md"


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, its own heading first."""
    said = section(text_of(PAGE), heading)
    assert said is not None
    rows = [line.strip("|\n ").split(" | ") for line in said.splitlines() if line.startswith("|")]
    head, rule, *rest = [[cell.strip(" |") for cell in row] for row in rows]
    assert all(re.fullmatch("-*", cell) for cell in "".join(rule).split("|"))
    return [head, *rest]


def test_the_table_is_the_one_that_is_tested() -> None:
    head, *rows = table("Behaviour by era")
    combinations = [f"{client} client, {server} server" for client in ERAS for server in ERAS]
    assert head == combinations
    assert [row[0] for row in rows] == list(WALKS)
    assert all(len(row) == len(combinations) + 1 and all(row) for row in rows)


def test_the_limits_are_those_of_the_code() -> None:
    limits = default_document({}).limits
    lanes = McpSettings(id="a", transport="stdio")
    said = {row[0]: tuple(row[1:]) for row in table("Limits")[1:]}
    assert said == {
        "parked calls": (f"{limits.parked:,}", "`limits.parked`"),
        "parked calls of one caller": (f"{limits.parked_per_user}", "`limits.parked_per_user`"),
        "time limit of a parked call": (f"{limits.parked_ms / 60_000:g} min", "`limits.parked_ms`"),
        "pending questions of one call": (f"{MAX_PENDING_QUESTIONS}", "fixed"),
        "validity of a modern server's state": (f"{STATE_SECONDS / 3600:g} h", "fixed"),
        "time limit for the answer of a legacy client": (f"{ANSWER_TIMEOUT_SECONDS / 60:g} min", "fixed"),
        "rounds of questions in a call of a legacy client": (f"{MAX_QUESTION_ROUNDS}", "fixed"),
        "connections to one program for clients that can answer questions": (
            f"{lanes.max_owner_connections}",
            "`max_connections`",
        ),
        "idle time of such a connection": (
            f"{lanes.owner_idle_timeout:g} s",
            "`connection_idle_ms`",
        ),
    }
