"""Keeps every record: the archive, its positions, and the audit of both."""
