"""Toolcrib beside its peers on one machine: `python -m bench` starts them, loads them and compares."""
