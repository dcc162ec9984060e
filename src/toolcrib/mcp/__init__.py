"""Facts of the Model Context Protocol that its client and its server share."""
