"""Alerts after a publication: compared with the corrected numbers, and corrected by request."""
