"""One suite per seam, run over everything that fills it."""
