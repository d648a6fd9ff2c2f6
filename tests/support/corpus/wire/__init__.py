"""Requests as they come on a socket, byte by byte, and what has to be answered: `cases.json`."""
