"""Reading: published cells, speed rows, and both merged."""
