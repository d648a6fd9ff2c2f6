"""Faults under load: a real stack, a hostile stream, killed processes, and a client that queries all the time.

The seed determines the stream, the faults and their order, but not how processes interleave.
"""
