"""Schemas fitted to what each LLM provider understands of them, with a report of what is lost."""
