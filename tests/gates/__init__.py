"""The house rules as tests: each gate reads the tree, and each has a test of its own that it can fail."""
