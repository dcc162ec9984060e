"""Schemas fitted to what providers take, and what is lost on the way."""
