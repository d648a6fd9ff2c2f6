"""Garbage collection and exports."""
