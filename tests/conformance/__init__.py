"""The protocol's own conformance suite, run against a server of ours: directly, and through the gateway."""
