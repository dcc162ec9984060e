"""Tests of toolcrib.apps."""
