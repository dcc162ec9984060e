"""Foreign schemas: which are accepted or refused, and how faults are reported."""
