"""What the platform costs beside the simplest thing that does the same work, measured in one run on one machine."""
