"""Benchmarks: what the platform costs compared with the simplest program that does the same work, in one run."""
