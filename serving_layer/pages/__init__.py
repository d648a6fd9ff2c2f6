"""Pages for browsers: rendered here, asking the same objects that the routes ask, so a number is said once."""
