"""Clients and servers of both eras with the gateway between them: what happens in each of the four cases."""
