"""The SQL store: one module per aggregate, the same statements on SQLite and on Postgres."""
