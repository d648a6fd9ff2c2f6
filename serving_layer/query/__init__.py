"""The query path: from a request to the numbers of its answer."""
