"""Topics, producers, consumers, and the progress of each reader."""
