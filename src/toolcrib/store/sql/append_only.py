"""Database triggers that make the audit table append-only: updates and deletes are rejected."""

_SQLITE_BODY = "BEGIN SELECT RAISE(ABORT, 'audit records cannot be changed or deleted'); END"
# INSERT OR REPLACE deletes without firing the delete trigger; Postgres has no such statement.
_SQLITE_REPLACE = "INSERT ON toolcrib_audit WHEN NEW.number <= (SELECT max(number) FROM toolcrib_audit)"

APPEND_ONLY: dict[str, tuple[str, ...]] = {
    "sqlite": (
        f"CREATE TRIGGER toolcrib_audit_update BEFORE UPDATE ON toolcrib_audit {_SQLITE_BODY}",
        f"CREATE TRIGGER toolcrib_audit_delete BEFORE DELETE ON toolcrib_audit {_SQLITE_BODY}",
        f"CREATE TRIGGER toolcrib_audit_replace BEFORE {_SQLITE_REPLACE} {_SQLITE_BODY}",
    ),
    "postgresql": (
        """
        CREATE OR REPLACE FUNCTION toolcrib_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit records cannot be changed or deleted'; END $$
        """,
        """
        CREATE TRIGGER toolcrib_audit_change BEFORE UPDATE OR DELETE ON toolcrib_audit
        FOR EACH ROW EXECUTE FUNCTION toolcrib_audit_refuse()
        """,
        """
        CREATE TRIGGER toolcrib_audit_truncate BEFORE TRUNCATE ON toolcrib_audit
        FOR EACH STATEMENT EXECUTE FUNCTION toolcrib_audit_refuse()
        """,
    ),
}
"""DDL by dialect. A database administrator can drop the triggers; `audit verify` detects later changes."""
