"""The index: how a metric compares with what a model expects. Outside the exact metrics."""
