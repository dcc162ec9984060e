"""The little of HTTP that every face needs."""
