"""Keeps sources alive: runs them, shows what they offer, runs them again when they die, replaces them."""

from toolcrib.supervisor.shelf import Shelf
from toolcrib.supervisor.supervisor import Supervisor

__all__ = ["Shelf", "Supervisor"]
