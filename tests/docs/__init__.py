"""The gates of the documentation: what exists is written about, what is written runs, links lead on."""
