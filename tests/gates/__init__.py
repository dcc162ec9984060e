"""The project rules as tests: each gate reads the tree."""
