"""What `--demo` adds: a handful of tools to look at, call and copy from."""
