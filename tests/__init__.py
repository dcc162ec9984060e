"""Tests that mirror src, gates for the rules of the project, and the external programs tests run against."""
