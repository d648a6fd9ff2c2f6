"""One experiment is one file: the concept, the fault, what has to come of it and why."""
