"""Facts to corrected cells to one publication. Knows nothing of the speed layer; they meet in the cut and in data."""
