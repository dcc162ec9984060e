"""`python -m toolcrib` is the command line."""

from toolcrib.cli import main

if __name__ == "__main__":
    main()
