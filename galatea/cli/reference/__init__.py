"""Generates the reference documentation from the code: `python -m galatea.cli.reference`, or `make docs`."""
