"""Converts schemas to the JSON Schema subset of each LLM provider, and reports what is lost."""
