"""One file per schema change. A released migration is immutable."""
