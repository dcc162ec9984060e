"""Tests of toolcrib.catalog."""
