"""Context rows: what an answer shows beside its points and never mixes into them. One module per kind of context."""
