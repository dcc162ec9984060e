"""Schemas from outside: what is let in, what is refused, and how faults are told."""
