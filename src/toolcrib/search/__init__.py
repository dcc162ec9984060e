"""Finding tools by what they do: the words of a question against the words of their definitions."""

from toolcrib.search.corpus import Corpus
from toolcrib.search.index import Index

SEARCH = "crib:search_tools"
"""The tool that searches for tools."""

__all__ = ["SEARCH", "Corpus", "Index"]
