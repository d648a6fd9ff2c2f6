"""Galatea's processes, one module each: `python -m deploy.services.NAME`."""
