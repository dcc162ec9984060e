"""Tests of the MCP face."""
