"""A recompute from the request to the plan, as it is recorded and taken up again."""
