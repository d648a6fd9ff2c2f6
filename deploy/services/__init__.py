"""Galatea's own processes: each is `python -m deploy.services.<name>`."""
