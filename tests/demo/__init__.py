"""Tests of the demo tools and apps."""
