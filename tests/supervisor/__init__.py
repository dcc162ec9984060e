"""Tests of toolcrib.supervisor."""
