"""The web page and its sessions."""
