"""Tests of toolcrib.sessions."""
