"""The middleware of a call between gateway and source: one module per step, ordered by the runtime."""
