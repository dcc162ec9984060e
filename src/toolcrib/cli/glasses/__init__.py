"""A pair of glasses in a terminal: what it shows, how it speaks, and its line to the gateway."""
