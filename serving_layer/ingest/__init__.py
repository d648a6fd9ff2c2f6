"""Ingest: events over HTTP."""
