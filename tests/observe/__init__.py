"""Tests of what is written down about calls."""
