"""Whether a test notices when the code is wrong: small faults put into the steps and hints, one by one."""
