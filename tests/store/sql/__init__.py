"""The store in SQL: opening, failing, surviving."""
