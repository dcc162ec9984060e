"""One file per change of the tables. A released one never changes again."""
