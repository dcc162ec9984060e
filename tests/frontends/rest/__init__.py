"""The REST face, asked through the application."""
