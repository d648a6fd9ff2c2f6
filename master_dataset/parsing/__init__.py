"""Bytes to facts: `parse` gives an Event or a DeadLetter. `rows` does it for Arrow, and is imported on its own."""
