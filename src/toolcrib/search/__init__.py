"""Tool search: BM25 over the words of tool definitions."""

from toolcrib.search.index import Corpus, Index

SEARCH_TOOL = "crib:search_tools"
"""Canonical name of the search tool."""

__all__ = ["SEARCH_TOOL", "Corpus", "Index"]
