"""What lasts, in SQL: one file per aggregate, the same statements on SQLite and on Postgres."""
