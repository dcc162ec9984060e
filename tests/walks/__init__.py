"""Walks through the whole house, in at one door and out again."""
