"""Tests of toolcrib.model."""
