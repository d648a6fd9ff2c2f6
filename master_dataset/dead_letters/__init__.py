"""Records that could not become events: looked at, mended, and sent to their topic again."""
