"""The tool contract: every rule with the tests that prove it."""
