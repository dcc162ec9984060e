"""The parts of the shared state, one by one."""
