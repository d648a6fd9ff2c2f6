"""The registered stores, and how their records are read."""
