"""The REST frontend, called through the application."""
