"""The image: its Containerfile, and the list of what is in it."""
