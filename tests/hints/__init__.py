"""Tests of toolcrib.hints."""
