"""Bytes to facts: `parse` returns an `Event` or a `DeadLetter`; `rows` does it for Arrow batches."""
