"""Tests of toolcrib.gateway."""
