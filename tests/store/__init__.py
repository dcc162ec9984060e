"""What lasts and what is shared, beyond what the contract suites prove."""
