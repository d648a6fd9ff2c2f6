"""Comparisons: which dates, windows and stores are compared with which."""
