"""Experiments, one per module: the concept, the fault, the expected result and the reason."""
