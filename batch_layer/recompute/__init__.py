"""Recomputes: planned, computed, published, and resumed after an interruption."""
