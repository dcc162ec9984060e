"""Benchmarks of Toolcrib, an upper bound and comparable servers on one machine: `python -m bench`."""
