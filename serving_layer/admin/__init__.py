"""What operators do and look at."""
