"""What a metric would have been expected to be, and how the value stands to it. A model, outside the exact metrics."""
