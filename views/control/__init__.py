"""What says which data readers see, and what changes it."""
