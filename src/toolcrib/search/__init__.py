"""Tool search: BM25 over the words of tool definitions."""

from toolcrib.search.corpus import Corpus
from toolcrib.search.index import Index

SEARCH = "crib:search_tools"
"""Canonical name of the search tool."""

__all__ = ["SEARCH", "Corpus", "Index"]
