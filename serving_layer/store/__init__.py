"""Reading cells: what the batch layer published, speed rows, and both merged."""
