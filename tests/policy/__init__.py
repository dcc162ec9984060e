"""Tests of toolcrib.policy."""
