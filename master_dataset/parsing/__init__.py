"""Bytes to facts: `parse` gives an Event or a DeadLetter. `rows` (Arrow, for Spark) is imported on its own, by those who have Arrow."""
