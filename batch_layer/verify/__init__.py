"""Compares what is published with a full recompute."""
