"""Comparisons with an earlier period."""
