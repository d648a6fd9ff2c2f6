"""Records that could not become events: list, patch and replay them."""
