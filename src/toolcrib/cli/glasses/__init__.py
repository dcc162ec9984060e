"""Simulated smart glasses in a terminal: display, speech, keyboard input and gateway connection."""
