"""Tests of toolcrib.steps."""
