"""Tests of toolcrib.identity."""
