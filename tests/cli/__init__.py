"""The command line, run in this process where that is enough, and as a process of its own where it is not."""
