"""What `--demo` adds."""
