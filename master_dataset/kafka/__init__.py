"""Topics, producers, consumers, and how far each reader has come."""
